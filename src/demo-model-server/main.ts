import { createHash } from 'node:crypto';
import { createWriteStream, openSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { RequestRecord } from './request-record.ts';
import { createDemoModelServer } from './server.ts';

const usage =
  'flags: --host NAME --port N --cold-load-ms N --tokens-per-second N --image-ms N --video-ms N --speed X ' +
  '--log-requests FILE';

function parseFlags() {
  const text = { type: 'string' } as const;
  const options = {
    ...{ host: text, port: text, speed: text, 'log-requests': text, 'cold-load-ms': text },
    ...{ 'tokens-per-second': text, 'image-ms': text, 'video-ms': text },
  };
  return parseArgs({ options }).values;
}

/** One line of JSON a request; credentials are replaced by their hash, so that they can still be compared. */
function logLine(record: RequestRecord): string {
  const headers = Object.entries(record.headers).map(([name, value]) => {
    const isSecret = /^(?:authorization|proxy-authorization|cookie|x-api-key)$/.test(name);
    const hash = isSecret ? createHash('sha256').update(String(value)).digest('hex') : '';
    return [name, isSecret ? `sha256:${hash}` : value];
  });
  const fields = {
    ...record,
    rawHeaders: undefined,
    body: undefined,
    headers: Object.fromEntries(headers) as object,
  };
  return `${JSON.stringify(fields)}\n`;
}

/** A number flag; undefined when the flag is not given. */
function numberOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const number = Number(text);
  if (text === '' || Number.isNaN(number))
    throw new RangeError(`--${name} must be a number, not "${text}"`);
  return number;
}

async function main(): Promise<void> {
  const flags = parseFlags();
  const chosen = {
    coldLoadMs: numberOf('cold-load-ms', flags['cold-load-ms']),
    tokensPerSecond: numberOf('tokens-per-second', flags['tokens-per-second']),
    imageMs: numberOf('image-ms', flags['image-ms']),
    videoMs: numberOf('video-ms', flags['video-ms']),
    speed: numberOf('speed', flags.speed),
  };
  const given = Object.entries(chosen).filter(([, value]) => value !== undefined);
  const file = flags['log-requests'];
  const log = file === undefined ? undefined : createWriteStream(file, { fd: openSync(file, 'a') });
  const server = createDemoModelServer({
    ...(Object.fromEntries(given) as Record<string, number>),
    onRequestEnd: (record) => log?.write(logLine(record)),
  });
  const stop = (): void => {
    void server.close().then(() => log?.end());
    if (process.connected) process.disconnect();
  };
  process.once('SIGTERM', stop).once('SIGINT', stop).once('disconnect', stop);
  const port = await server.listen(numberOf('port', flags.port) ?? 0, flags.host ?? '127.0.0.1');
  if (process.send) process.send({ type: 'listening', port });
  else process.stdout.write(`demo model server on ${server.url}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`demo model server: ${(error as Error).message} (${usage})\n`);
  process.exitCode = 1;
  if (process.connected) process.disconnect();
});
