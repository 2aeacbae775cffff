import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { BerthSystem } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { Gate, ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat } from '../support/requests.ts';
import {
  changingRows,
  endlessRows,
  lookRows,
  passingRows,
  queuedRows,
  refusedControlRows,
  refusedRows,
  type RouteRow,
} from '../support/route-rows.ts';

let demo: ScriptedModelServer;
let berth: BerthSystem;

beforeAll(async () => {
  demo = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: demo.url });
});
afterAll(async () => {
  await berth.stop();
  await demo.close();
});

interface Seen {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly jobId: string | null;
}

/** Berth's own, and what belongs to a connection or a moment. */
const apart = /^(?:x-berth-|server-timing$|date$|connection$|keep-alive$)/;

async function begin(url: string, row: RouteRow, signal?: AbortSignal): Promise<Response> {
  const { method, target, body, type } = row;
  return fetch(url + target, {
    method,
    redirect: 'manual',
    ...(body === undefined ? {} : { body }),
    ...(type === undefined ? {} : { headers: { 'content-type': type } }),
    ...(signal === undefined ? {} : { signal }),
  });
}

const seen = (response: Response, body: string): Seen => ({
  status: response.status,
  headers: Object.fromEntries([...response.headers].filter(([name]) => !apart.test(name))),
  body,
  jobId: response.headers.get('x-berth-job-id'),
});

async function ask(url: string, row: RouteRow): Promise<Seen> {
  const response = await begin(url, row);
  return seen(response, Buffer.from(await response.arrayBuffer()).toString('latin1'));
}

/** The head of an answer without an end, and what it says until that is enough. */
async function glance(
  url: string,
  row: RouteRow,
  isEnough: (text: string) => boolean,
): Promise<Seen> {
  const leave = new AbortController();
  const response = await begin(url, row, leave.signal);
  const reader = response.body?.getReader();
  let text = '';
  while (!isEnough(text)) {
    const piece = await reader?.read();
    if (piece === undefined || piece.done) break;
    text += Buffer.from(piece.value).toString('latin1');
  }
  leave.abort();
  return seen(response, text);
}

const names = (rows: readonly RouteRow[]): [name: string, row: RouteRow][] =>
  rows.map((row) => {
    const isStream = row.type === 'application/json' && String(row.body).includes('"stream":true');
    return [`${row.method} ${row.target}${isStream ? ' (stream)' : ''}`, row];
  });

/** What the model server itself says, and what it says through Berth, which asked it for just the same. */
async function both(row: RouteRow): Promise<{ direct: Seen; through: Seen }> {
  const direct = await ask(demo.url, row);
  const before = demo.record.length;
  const through = await ask(berth.url, row);
  if (row.method !== 'OPTIONS') {
    const asked = demo.record.filter(
      ({ method, target }) => method === row.method && target === row.target,
    );
    const [first, second] = asked.slice(-2);
    expect(demo.record.slice(before)).toContain(second);
    expect(second?.bodySha256).toBe(first?.bodySha256);
    expect(second?.headers['content-type']).toBe(first?.headers['content-type']);
  }
  return { direct, through };
}

const facts = ({ status, headers, body }: Seen): object => ({ status, headers, body });

describe('a request that needs the GPU', () => {
  test.each(names(queuedRows))(
    'row 2: %s takes a turn, and its answer is the one of the model server',
    async (_name, row) => {
      const { direct, through } = await both(row);
      expect(facts(through)).toEqual(facts(direct));
      expect(direct.status).toBe(200);
      expect(through.jobId).not.toBeNull();
    },
  );

  test.each(names(refusedControlRows))(
    'row 2: %s would stop models, and takes a turn even to be refused',
    async (_name, row) => {
      const { direct, through } = await both(row);
      expect(facts(through)).toEqual(facts(direct));
      expect([direct.status, through.jobId === null]).toEqual([404, false]);
    },
  );

  test.each(names(lookRows))(
    'row 2: %s takes a turn while the model is not loaded, and none when it is',
    async (_name, row) => {
      const direct = await ask(demo.url, row);
      // Berth may have looked at the models a moment ago.
      const cold = await eventually(
        async () => {
          await fetch(`${demo.url}/api/models/unload`, { method: 'POST' });
          const answer = await ask(berth.url, row);
          return answer.jobId !== null && answer;
        },
        { what: 'a job' },
      );
      const warm = await eventually(
        async () => {
          const answer = await ask(berth.url, row);
          return answer.jobId === null && answer;
        },
        { what: 'an answer at once' },
      );
      expect([facts(cold), facts(warm)]).toEqual([facts(direct), facts(direct)]);
    },
  );
});

/** Throughout the tests around it a job of Berth's holds the GPU: whatever took a turn would wait for ever. */
function holdTheGpu(): void {
  let gate: Gate;
  let running: Promise<Response>;
  beforeAll(async () => {
    gate = demo.hold();
    running = fetch(`${berth.url}/v1/chat/completions`, chat('holds the GPU'));
    await gate.arrived;
  });
  afterAll(async () => {
    gate.release();
    expect((await running).status).toBe(200);
  });
}

describe('while a job runs, a request that needs no GPU', () => {
  holdTheGpu();

  test.each(names(passingRows))(
    'row 40: %s passes, and its answer is the one of the model server',
    async (_name, row) => {
      const { direct, through } = await both(row);
      expect(facts(through)).toEqual(facts(direct));
      expect(through.jobId).toBeNull();
    },
  );

  test.each(names(changingRows))(
    'row 40: %s passes, and shows the same but for its numbers',
    async (_name, row) => {
      const { direct, through } = await both(row);
      const shape = ({ body }: Seen): Set<string> =>
        new Set(body.replaceAll(/[-\d.eTZ:]+/g, '0').split(/[\n,]/));
      expect(shape(through)).toEqual(shape(direct));
      expect([through.status, through.jobId]).toEqual([200, null]);
      expect(through.headers['content-type']).toBe(direct.headers['content-type']);
    },
  );

  test.each(names(endlessRows))(
    'row 40: %s passes, and begins as it does at the model server',
    async (_name, row) => {
      const isSilent = row.target.includes('no-history');
      const direct = await glance(demo.url, row, (text) => isSilent || text.includes('\n'));
      // Lines of a log may have gone meanwhile, and others come: one of those that were there is enough.
      const line = direct.body.split('\n')[0] ?? '';
      const through = await glance(berth.url, row, (text) => text.includes(line));
      expect({ ...facts(through), body: '' }).toEqual({ ...facts(direct), body: '' });
      expect([through.body.includes(line), through.jobId]).toEqual([true, null]);
    },
  );

  test('row 40: what was logged is shown, and goes on', async () => {
    const { direct, through } = await both({ method: 'GET', target: '/logs' });
    const last = direct.body.trimEnd().split('\n').at(-1) ?? '';
    expect(through.body).toContain(last);
    expect(last).toMatch(/^\[/);
    expect([through.status, through.jobId]).toEqual([200, null]);
  });
});

describe('while a job runs, a request that the model server refuses', () => {
  holdTheGpu();

  test.each(names(refusedRows))(
    'row 1: %s gets its refusal, at once and unaltered',
    async (_name, row) => {
      const { direct, through } = await both(row);
      expect(facts(through)).toEqual(facts(direct));
      expect(direct.status).toBeGreaterThanOrEqual(400);
    },
  );
});
