import { connect } from 'node:net';

/** An error reply of Redis, e.g. `LOADING Redis is loading the dataset in memory`. */
export class RedisReplyError extends Error {}

/**
 * Sends one command over a unix socket of its own and resolves with the reply's text: what the
 * supervisor needs to watch its embedded Redis, without a client library. Only simple strings,
 * errors, integers and bulk strings are understood (a missing bulk string is '').
 *
 * @param timeoutMs from the call to the whole reply.
 * @throws RedisReplyError for an error reply; the socket's error, or a plain one after the timeout.
 */
export function redisCommand(
  socketPath: string,
  command: readonly string[],
  timeoutMs: number,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ path: socketPath });
    let received = Buffer.alloc(0);
    const timer = setTimeout(() => {
      socket.destroy(new Error(`Redis did not answer ${command[0] ?? ''} within ${timeoutMs} ms`));
    }, timeoutMs);
    socket.on('connect', () => socket.write(encode(command)));
    socket.on('data', (piece: Buffer) => {
      received = Buffer.concat([received, piece]);
      const reply = decode(received);
      if (reply === undefined) return;
      if (reply instanceof RedisReplyError) reject(reply);
      else resolve(reply);
      socket.destroy();
    });
    socket.on('error', reject);
    socket.on('close', () => {
      clearTimeout(timer);
      reject(new Error('Redis closed the connection without a reply'));
    });
  });
}

function encode(command: readonly string[]): string {
  const parts = command.map((part) => `$${Buffer.byteLength(part)}\r\n${part}\r\n`);
  return `*${command.length}\r\n${parts.join('')}`;
}

/** The reply, or undefined while it is not complete. */
function decode(received: Buffer): string | RedisReplyError | undefined {
  const lineEnd = received.indexOf('\r\n');
  if (lineEnd === -1) return undefined;
  const line = received.toString('utf8', 1, lineEnd);
  switch (String.fromCharCode(received[0] ?? 0)) {
    case '+':
    case ':':
      return line;
    case '-':
      return new RedisReplyError(line);
    case '$': {
      const length = Number(line);
      if (length < 0) return '';
      const start = lineEnd + 2;
      return received.length < start + length + 2
        ? undefined
        : received.toString('utf8', start, start + length);
    }
    default:
      return new RedisReplyError('a reply of a kind that is not understood');
  }
}
