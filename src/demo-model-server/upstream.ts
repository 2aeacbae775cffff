import { patternBytes } from './derive.ts';
import { sendModelError } from './errors.ts';
import { modelJson, readJsonObject, workMs, type Endpoint, type Generation } from './generation.ts';
import { modelEndpoint } from './model-routes.ts';
import { waitFor } from './pace.ts';

/** Answers `/upstream/<model>/<path>`: what model servers serve, videos, bytes, health; any other path is echoed. */
export const upstreamEndpoint: Endpoint = async (generation) => {
  const { method, path } = generation;
  const inference = modelEndpoint(method, path);
  if (inference !== undefined) await inference(generation);
  else if (method === 'POST' && path === '/v1/videos') await sendVideo(generation);
  else if (path === '/bytes') await sendBytes(generation);
  else if (path === '/health') await generation.answer.send(200, modelJson, '{"status":"ok"}');
  else await echo(generation);
};

const bytesPerVideoSecond = 64 * 1024;

/**
 * Silent for the whole render, then a file of 64 KiB for each of the request's `seconds` (4 unless given):
 * an MP4 file-type box and a media box of fixed bytes.
 */
async function sendVideo(generation: Generation): Promise<void> {
  const { answer, times } = generation;
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const seconds = Number(fields.seconds ?? 4);
  if (!Number.isInteger(seconds) || seconds < 1 || seconds > 3600) {
    await sendModelError(answer, 400, 'seconds must be a whole number from 1 to 3600');
    return;
  }
  await waitFor(workMs(fields, times.videoMs, times), answer.signal);
  const mediaBytes = seconds * bytesPerVideoSecond;
  const fileType = box('ftyp', 12, Buffer.from('isom\x00\x00\x02\x00isom', 'latin1'));
  const media = box('mdat', mediaBytes + generation.seed.length, generation.seed);
  const head = Buffer.concat([fileType, media]);
  answer.head(200, { 'Content-Type': 'video/mp4', 'Content-Length': head.length + mediaBytes });
  await answer.write(head);
  await writePattern(generation, mediaBytes, 64 * 1024, 0);
}

function box(type: string, contentBytes: number, content: Buffer): Buffer {
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(8 + contentBytes, 0);
  frame.write(type, 4, 'latin1');
  return Buffer.concat([frame, content]);
}

/** `/bytes?size=N&chunk=N&delay=ms`: so many fixed bytes, in such pieces (64 KiB), so many ms between them (0). */
async function sendBytes(generation: Generation): Promise<void> {
  const { answer, query } = generation;
  const size = Number(query.get('size') ?? 0);
  const chunk = Number(query.get('chunk') ?? 64 * 1024);
  const delayMs = Number(query.get('delay') ?? 0);
  if (
    !Number.isSafeInteger(size) ||
    size < 0 ||
    !Number.isInteger(chunk) ||
    chunk < 1 ||
    !(delayMs >= 0)
  ) {
    await sendModelError(answer, 400, 'size, chunk and delay must be numbers, chunk above 0');
    return;
  }
  answer.head(200, { 'Content-Type': 'application/octet-stream', 'Content-Length': size });
  await writePattern(generation, size, Math.min(chunk, 1024 * 1024), delayMs);
}

/** Writes the pattern and ends the answer with its last piece. */
async function writePattern(
  { answer, times }: Generation,
  size: number,
  chunk: number,
  delayMs: number,
): Promise<void> {
  let offset = 0;
  for (; size - offset > chunk; offset += chunk) {
    await answer.write(patternBytes(offset, chunk));
    if (delayMs > 0) await waitFor(delayMs / times.speed, answer.signal);
  }
  await answer.end(patternBytes(offset, size - offset));
}

async function echo(generation: Generation): Promise<void> {
  const said = {
    method: generation.method,
    path: generation.path,
    query: generation.query.toString(),
    model: generation.model.id,
    body_bytes: generation.body.length,
    body_sha256: generation.seed.toString('hex'),
  };
  await generation.answer.send(200, modelJson, JSON.stringify(said));
}
