import { brotliCompressSync } from 'node:zlib';
import { get, redirect, type ControlEntry } from './control-route.ts';
import { sendPlain } from './errors.ts';
import type { Exchange } from './exchange.ts';
import { paint } from './png.ts';

const page = Buffer.from(
  '<!doctype html><title>demo model server</title><h1>demo model server</h1>' +
    '<p>A stand-in for llama-swap. See <a href="/running">/running</a>.</p>\n',
);
const packedPage = brotliCompressSync(page);

/** The web page, which has one file, and its icon. */
export function pageRoutes(): ControlEntry[] {
  return [
    ['/', get((exchange) => redirect(exchange, 302, '/ui'))],
    ['/ui', get((exchange) => redirect(exchange, 307, '/ui/'))],
    ['/ui/*', get(sendPage)],
    ['/upstream', get((exchange) => redirect(exchange, 302, '/ui/models'))],
    [
      '/favicon.ico',
      get(({ answer }) => answer.send(200, { 'Content-Type': 'image/x-icon' }, icon())),
    ],
  ];
}

/** Any path without an ending is the page, which then shows what the path says; files there are none. */
async function sendPage({ answer, headers }: Exchange, rest: string): Promise<void> {
  const isFile = (rest.split('/').at(-1) ?? '').includes('.');
  if (isFile && rest !== 'index.html') {
    await sendPlain(answer, 404, '404 page not found');
    return;
  }
  const type = { 'Content-Type': 'text/html; charset=utf-8' };
  const accepted = (headers['accept-encoding'] ?? '').split(',');
  const isPacked = accepted.some((coding) => coding.split(';', 1)[0]?.trim() === 'br');
  if (isPacked) {
    const packed = { ...type, 'Content-Encoding': 'br', Vary: 'Accept-Encoding' };
    await answer.send(200, packed, packedPage);
  } else await answer.send(200, type, page);
}

/** An icon file that holds one picture of 16 by 16. */
function icon(): Buffer {
  const picture = paint(Buffer.from('demo icon'), 16, 16);
  const head = Buffer.alloc(22);
  head.writeUInt16LE(1, 2);
  head.writeUInt16LE(1, 4);
  head.writeUInt8(16, 6);
  head.writeUInt8(16, 7);
  head.writeUInt16LE(1, 10);
  head.writeUInt16LE(24, 12);
  head.writeUInt32LE(picture.length, 14);
  head.writeUInt32LE(head.length, 18);
  return Buffer.concat([head, picture]);
}
