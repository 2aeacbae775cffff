import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { RequestListener } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals';
import { BerthClient } from '../../src/cli/berth-client.ts';
import { fetchResult } from '../../src/cli/fetch-result.ts';
import { follow } from '../../src/cli/follow.ts';
import { followedJob } from '../../src/cli/job-news.ts';
import type { JobNews } from '../../src/cli/job-news.ts';
import { FileTarget, StreamTarget } from '../../src/cli/result-target.ts';
import { FakeTerminal } from '../support/fake-terminal.ts';
import { ScriptedBerth } from '../support/scripted-berth.ts';

const ID = '0f8b6c1e-3c1d-4b1e-9a57-2d9f0c6e7a41';
const SECRET = 'a-key-that-nobody-sees';
let terminal: FakeTerminal;
let berth: ScriptedBerth;
let client: BerthClient;

beforeEach(() => {
  terminal = new FakeTerminal();
});
afterEach(async () => {
  if ((terminal.output + terminal.said).includes(SECRET)) throw new Error('the key was shown');
  await berth.stop();
});

async function scripted(...answers: RequestListener[]): Promise<void> {
  berth = await ScriptedBerth.start(...answers);
  client = new BerthClient({ url: `${berth.url}/`, key: SECRET, member: 'ann' }, terminal);
}

const json =
  (value: unknown, status = 200, headers: Record<string, string> = {}): RequestListener =>
  (_request, response) =>
    void response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify(value));
const refusing = (code: string, status: number, headers: Record<string, string> = {}) =>
  json({ src: 'berth', error: { message: 'so it is', code, param: null } }, status, headers);
const cut: RequestListener = (request) => void request.socket.destroy();

describe('a call', () => {
  test('shows the key and the member, and waits as long as a refusal asks for, a bounded number of times', async () => {
    await scripted(refusing('queue_full', 503, { 'retry-after': '7' }), json({ it: 'worked' }));
    expect(await client.json('/berth/queue')).toEqual({ it: 'worked' });
    expect(terminal.waits).toEqual([7000]);
    expect(berth.seen[0]?.headers).toMatchObject({
      authorization: `Bearer ${SECRET}`,
      'x-berth-member': 'ann',
      'accept-encoding': 'identity',
    });
    await berth.stop();
    await scripted(refusing('member_queue_full', 429, { 'retry-after': '1' }));
    await expect(client.json('/x')).rejects.toThrow('so it is (member_queue_full, 429)');
    expect(berth.seen).toHaveLength(6);
  });

  test('is made again when its answer was lost, unless it would do its work twice', async () => {
    await scripted(cut, json(1));
    expect(await client.json('/x', { method: 'POST', body: Buffer.from('{}') })).toBe(1);
    await berth.stop();
    await scripted(cut, json(1));
    const once = client.json('/x', { method: 'POST', mayRepeat: false });
    await expect(once).rejects.toThrow(/cannot be reached/);
    expect(berth.seen).toHaveLength(1);
  });

  test('says whose error it is', async () => {
    await scripted(
      json({ error: { message: 'no such\u001b[2J model' } }, 404),
      refusing('unauthorized', 401),
    );
    await expect(client.call('/x')).rejects.toThrow('no such [2J model (answered with 404)');
    await expect(client.call('/x')).rejects.toThrow('so it is (unauthorized, 401)');
  });

  test.each(['ftp://host', 'nonsense', 'http://ann:secret@host'])(
    'has no address like %s',
    async (url) => {
      await scripted(json(1));
      expect(() => new BerthClient({ url }, terminal)).toThrow(/^--url: /);
    },
  );
});

describe('following a job', () => {
  const state = (step: string, name: JobNews['state']): string =>
    `id: ${step}\nevent: state\ndata: ${JSON.stringify({ id: ID, state: name, at: 1, job: jobOf(name) })}\n\n`;
  const jobOf = (name: string): object => ({
    ...{ id: ID, state: name, position: null, eta_seconds: null, started_at: null },
    metrics: {},
  });
  const streaming =
    (...pieces: string[]): RequestListener =>
    (_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (const piece of pieces) response.write(piece);
      response.end();
    };
  const states = async (): Promise<string[]> => {
    const seen: string[] = [];
    for await (const news of follow(client, terminal, followedJob(ID)))
      if (seen.at(-1) !== news.state) seen.push(news.state);
    return seen;
  };

  test('goes on after the last event that was seen when the stream is cut', async () => {
    await scripted(
      streaming(state('0-0', 'waiting'), ': berth\n\nid: 0-1\nevent: pos'),
      json(jobOf('waiting')),
      streaming(state('1-0', 'running').slice(0, 20), state('1-0', 'running').slice(20)),
      json(jobOf('running')),
      streaming(state('2-0', 'completed')),
    );
    expect(await states()).toEqual(['waiting', 'running', 'completed']);
    const [first, , second, , third] = berth.seen.map(({ headers }) => headers['last-event-id']);
    expect([first, second, third]).toEqual([undefined, '0-0', '1-0']);
  });

  test('looks at the job itself where streams do not come through', async () => {
    const page: RequestListener = (_request, response) =>
      void response.writeHead(200, { 'content-type': 'text/html' }).end('<p>');
    const look = json(jobOf('running'));
    await scripted(page, look, page, look, page, look, look, json(jobOf('failed')));
    expect(await states()).toEqual(['running', 'failed']);
    expect(berth.seen.slice(5).map(({ url }) => url)).toEqual(
      Array.from({ length: 3 }, () => `/berth/jobs/${ID}`),
    );
  });

  test('ends at once when there is no such job', async () => {
    await scripted(refusing('job_not_found', 404));
    await expect(states()).rejects.toThrow(/job_not_found/);
    expect(berth.seen).toHaveLength(1);
  });
});

describe('a result', () => {
  const bytes = Buffer.from(Array.from({ length: 100_000 }, (_, index) => index % 251));
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'berth-result-'));
    file = path.join(folder, 'part');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Answers with the range that is asked for, of which `most` bytes come before the connection is cut. */
  const serving =
    (
      most = Infinity,
      headers: Record<string, string> = { 'accept-ranges': 'bytes' },
    ): RequestListener =>
    (request, response) => {
      const [, from] = /^bytes=(\d+)-$/.exec(request.headers.range ?? '') ?? [];
      const start = Number(from ?? 0);
      if (start >= bytes.length) {
        response.writeHead(416, { 'content-range': `bytes */${bytes.length}` }).end();
        return;
      }
      const rest = bytes.subarray(start);
      response.writeHead(from === undefined ? 200 : 206, {
        'content-type': 'image/png',
        'content-length': rest.length,
        ...(from === undefined
          ? {}
          : { 'content-range': `bytes ${start}-${bytes.length - 1}/${bytes.length}` }),
        ...headers,
      });
      if (most >= rest.length) response.end(rest);
      else response.write(rest.subarray(0, most), () => response.destroy());
    };
  const fetched = async (target = new FileTarget(file)) => {
    try {
      return await fetchResult(client, terminal, ID, target);
    } finally {
      if (target instanceof FileTarget) await target.finish();
    }
  };

  test('that breaks off is asked for from where it ended, in a file and on standard output', async () => {
    await scripted(serving(40_000), serving(1), serving(20_000), serving());
    expect(await fetched()).toEqual({ status: 200, contentType: 'image/png' });
    expect(readFileSync(file).equals(bytes)).toBe(true);
    expect(berth.seen).toHaveLength(4);
    await berth.stop();
    await scripted(serving(40_000), serving());
    const pieces: Buffer[] = [];
    terminal.out.on('data', (piece: Buffer) => pieces.push(piece));
    await fetchResult(client, terminal, ID, new StreamTarget(terminal.out));
    expect(Buffer.concat(pieces).equals(bytes)).toBe(true);
  });

  test.each([1, 60_000, bytes.length])(
    'of which a file holds %d bytes already is fetched from there',
    async (held) => {
      writeFileSync(file, bytes.subarray(0, held));
      await scripted(serving());
      expect(await fetched()).toEqual({ status: 200, contentType: 'image/png' });
      expect(readFileSync(file).equals(bytes)).toBe(true);
      expect(berth.seen.map(({ headers }) => headers.range)).toEqual([`bytes=${held - 1}-`]);
    },
  );

  test('is fetched anew where a file holds more than there is, or no ranges are given', async () => {
    writeFileSync(file, Buffer.alloc(bytes.length + 10));
    await scripted(serving());
    await fetched();
    expect(readFileSync(file).equals(bytes)).toBe(true);
    writeFileSync(file, Buffer.alloc(10));
    await berth.stop();
    await scripted((_request, response) => void response.writeHead(200).end('short'));
    await fetched();
    expect(readFileSync(file, 'utf8')).toBe('short');
  });

  test('that the model server broke off itself is no file, and is not asked for again', async () => {
    await scripted(serving(10, {}));
    await expect(fetched()).rejects.toThrow(/breaks off/);
    expect(readFileSync(file)).toHaveLength(0);
    expect(berth.seen).toHaveLength(1);
  });

  test('which makes no progress is given up', async () => {
    await scripted(serving(0));
    await expect(fetched()).rejects.toThrow(/the same command goes on/);
    expect(berth.seen.length).toBeLessThan(10);
  });

  test('with an error status is the model server’s, unless Berth has none', async () => {
    await scripted(
      json({ error: { message: 'out of memory' } }, 500),
      refusing('result_gone', 410),
    );
    expect(await fetched()).toEqual({ status: 500, contentType: 'application/json' });
    expect(readFileSync(file, 'utf8')).toBe('{"error":{"message":"out of memory"}}');
    rmSync(file);
    await expect(fetchResult(client, terminal, ID, new FileTarget(file))).rejects.toThrow(
      'so it is (result_gone, 410)',
    );
  });
});
