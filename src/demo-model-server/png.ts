import { crc32, deflateSync } from 'node:zlib';

const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const eightBitRgb = [8, 2, 0, 0, 0];

/** A picture of soft colour waves that depends on the seed (at least 8 bytes) alone, as a PNG file. */
export function paint(seed: Uint8Array, width: number, height: number): Buffer {
  const [red = 0, green = 0, blue = 0, angle = 0, wide = 0, high = 0] = seed;
  const colours = [red, green, blue].map((colour) => 80 + (colour * 175) / 255);
  const rows = Buffer.alloc(height * (1 + width * 3));
  let at = 0;
  for (let y = 0; y < height; y += 1) {
    rows[at++] = 0;
    for (let x = 0; x < width; x += 1) {
      const wave =
        Math.sin((x / width) * (1 + wide / 32) + angle) * Math.cos((y / height) * (1 + high / 32));
      const light = 160 + Math.round(95 * wave);
      for (const colour of colours) rows[at++] = (colour * light) >> 8;
    }
  }
  const header = Buffer.alloc(8);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  return Buffer.concat([
    signature,
    chunk('IHDR', Buffer.concat([header, Buffer.from(eightBitRgb)])),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data]);
  const frame = Buffer.alloc(4);
  frame.writeUInt32BE(data.length);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([frame, body, checksum]);
}
