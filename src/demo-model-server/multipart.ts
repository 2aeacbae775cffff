/** One part of a multipart/form-data body. */
export interface FormPart {
  readonly name: string;
  /** Present on files. */
  readonly filename?: string;
  readonly data: Buffer;
}

const headEnd = Buffer.from('\r\n\r\n');

/** The parts of a multipart body, in order; parts that cannot be read are left out, and so is all without a boundary. */
export function readMultipart(body: Buffer, contentType: string): FormPart[] {
  const boundary = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType);
  const marker = boundary?.[1] ?? boundary?.[2];
  if (marker === undefined) return [];
  const delimiter = Buffer.from(`--${marker}`);
  const parts: FormPart[] = [];
  let start = body.indexOf(delimiter);
  while (start !== -1) {
    const next = body.indexOf(delimiter, start + delimiter.length);
    if (next === -1) break;
    // A part lies between its delimiter's line end and the line end before the next one.
    const part = readPart(body.subarray(start + delimiter.length + 2, next - 2));
    if (part !== undefined) parts.push(part);
    start = next;
  }
  return parts;
}

function readPart(part: Buffer): FormPart | undefined {
  const end = part.indexOf(headEnd);
  if (end === -1) return undefined;
  const head = part.subarray(0, end).toString('utf8');
  const name = /\bname="([^"]*)"/i.exec(head)?.[1];
  if (name === undefined) return undefined;
  const filename = /\bfilename="([^"]*)"/i.exec(head)?.[1];
  const data = part.subarray(end + headEnd.length);
  return filename === undefined ? { name, data } : { name, filename, data };
}
