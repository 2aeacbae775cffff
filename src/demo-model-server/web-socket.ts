import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';

const accepted =
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n';
/** What RFC 6455 (1.3) appends to the client's key. */
const salt = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const opcodes = { text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa } as const;

/** Whether a request asks for a WebSocket. */
export function asksForWebSocket(request: IncomingMessage): boolean {
  const { upgrade = '', 'sec-websocket-key': key } = request.headers;
  return request.method === 'GET' && upgrade.toLowerCase() === 'websocket' && key !== undefined;
}

/** The server's end of one WebSocket: whole messages of up to some kilobytes, unfragmented. */
export class WebSocketEnd {
  /** Called with each text or binary message. */
  onMessage: (data: Buffer, isText: boolean) => void = () => undefined;
  /** Called once when the connection has closed. */
  onClose: () => void = () => undefined;
  readonly #socket: Duplex;
  #pending: Buffer;
  #isClosing = false;

  /** Accepts the request on its socket; `first`: bytes that came along with it. `onEnd` is called once at the end. */
  constructor(request: IncomingMessage, socket: Duplex, first: Buffer, onEnd: () => void) {
    this.#socket = socket;
    this.#pending = first;
    const key = request.headers['sec-websocket-key'] ?? '';
    const accept = createHash('sha1').update(`${key}${salt}`).digest('base64');
    socket.write(`${accepted}Sec-WebSocket-Accept: ${accept}\r\n\r\n`);
    socket.on('data', (piece: Buffer) => {
      this.#pending = Buffer.concat([this.#pending, piece]);
      this.#read();
    });
    socket.on('end', () => socket.end());
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      onEnd();
      this.onClose();
    });
    setImmediate(() => this.#read());
  }

  send(data: string | Buffer): void {
    const isText = typeof data === 'string';
    this.#frame(isText ? opcodes.text : opcodes.binary, isText ? Buffer.from(data) : data);
  }

  /** Says goodbye and closes once that is written. */
  close(code = 1000): void {
    if (this.#isClosing) return;
    this.#isClosing = true;
    const reason = Buffer.alloc(2);
    reason.writeUInt16BE(code);
    this.#frame(opcodes.close, reason);
    this.#socket.end();
  }

  /** Cuts the connection. */
  destroy(): void {
    this.#socket.destroy();
  }

  #read(): void {
    for (;;) {
      const frame = readFrame(this.#pending);
      if (frame === undefined) return;
      this.#pending = this.#pending.subarray(frame.bytes);
      if (frame.opcode === opcodes.close) this.close();
      else if (frame.opcode === opcodes.ping) this.#frame(opcodes.pong, frame.data);
      else if (frame.opcode === opcodes.text || frame.opcode === opcodes.binary)
        this.onMessage(frame.data, frame.opcode === opcodes.text);
    }
  }

  #frame(opcode: number, data: Buffer): void {
    if (this.#socket.writableEnded || this.#socket.destroyed) return;
    const long = data.length > 125;
    const head = Buffer.alloc(long ? 10 : 2);
    head[0] = 0x80 | opcode;
    head[1] = long ? 127 : data.length;
    if (long) head.writeBigUInt64BE(BigInt(data.length), 2);
    this.#socket.write(Buffer.concat([head, data]));
  }
}

/** The first frame, unmasked, and how many bytes it took; undefined while it is not there whole. */
function readFrame(bytes: Buffer): { opcode: number; data: Buffer; bytes: number } | undefined {
  if (bytes.length < 2) return undefined;
  const short = (bytes[1] ?? 0) & 0x7f;
  const wide = short === 127 ? 8 : short === 126 ? 2 : 0;
  const isMasked = ((bytes[1] ?? 0) & 0x80) !== 0;
  const start = 2 + wide + (isMasked ? 4 : 0);
  if (bytes.length < start) return undefined;
  const length =
    wide === 8 ? Number(bytes.readBigUInt64BE(2)) : wide === 2 ? bytes.readUInt16BE(2) : short;
  if (bytes.length < start + length) return undefined;
  const data = Buffer.from(bytes.subarray(start, start + length));
  if (isMasked)
    for (let at = 0; at < length; at += 1)
      data[at] = (data[at] ?? 0) ^ (bytes[start - 4 + (at % 4)] ?? 0);
  return { opcode: (bytes[0] ?? 0) & 0x0f, data, bytes: start + length };
}
