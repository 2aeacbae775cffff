import { request as send } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { JobObject } from '../../src/gateway/job-object.ts';
import { BerthSystem } from '../support/berth-system.ts';
import type { FurtherIngress } from '../support/berth-system.ts';
import { startDemoModelServer } from '../support/demo-model-server.ts';
import type { ScriptedModelServer } from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';
import { chat, namesOf } from '../support/requests.ts';

let model: ScriptedModelServer;
let berth: BerthSystem;
let other: FurtherIngress;

beforeAll(async () => {
  model = await startDemoModelServer({ tokensPerSecond: 1000 });
  berth = await BerthSystem.start({ modelServerUrl: model.url });
  other = await berth.addIngress();
});
afterAll(async () => {
  await berth.stop();
  await model.close();
});

/** What a client was told; `status` 0: no answer, `text` then says why. Times by performance.now(). */
interface Answer {
  url: string;
  name: string;
  status: number;
  text: string;
  fromMs: number;
  toMs: number;
}

/** One request on a connection of its own, so that no client meets a connection which was closed since it was used last. */
async function ask(url: string, name: string, extra: object, prefer?: string): Promise<Answer> {
  const { headers, body } = chat(name, { ...extra });
  const fromMs = performance.now();
  const answer = (status: number, text: string): Answer => ({
    ...{ url, name, status, text, fromMs },
    toMs: performance.now(),
  });
  return new Promise((resolve) => {
    const lost = (error: NodeJS.ErrnoException): void => resolve(answer(0, String(error.code)));
    const request = send(`${url}/v1/chat/completions`, {
      method: 'POST',
      agent: false,
      headers: {
        ...(headers as Record<string, string>),
        ...(prefer === undefined ? {} : { prefer }),
      },
    });
    request.once('error', lost);
    request.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.once('error', lost);
      response.once('end', () => resolve(answer(response.statusCode ?? 0, text)));
    });
    request.end(body);
  });
}

/** Asks one thing after the other until `isOver`; all answers. */
async function keepAsking(
  url: string,
  name: string,
  isOver: () => boolean,
  extra: object,
  prefer?: string,
): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (let count = 1; !isOver(); count += 1) {
    const answer = await ask(url, `${name} ${count}`, extra, prefer);
    answers.push(answer);
    await sleep(answer.status === 0 ? 300 : 150);
  }
  return answers;
}

/** All jobs of the list, page by page. */
async function listed(query: string): Promise<JobObject[]> {
  const jobs: JobObject[] = [];
  for (let cursor: string | null = ''; cursor !== null;) {
    const more = cursor === '' ? '' : `&cursor=${cursor}`;
    const page = await fetch(`${other.url}/berth/jobs${query}${more}`);
    const list = (await page.json()) as { data: JobObject[]; next_cursor: string | null };
    jobs.push(...list.data);
    cursor = list.next_cursor;
  }
  return jobs;
}

/** Refused while it goes or is not there; a connection that was made and not yet taken when it closed its port is reset. */
const isOfRestart = ({ status, text }: Answer): boolean =>
  (status === 503 && text.includes('"shutting_down"')) ||
  (status === 0 && (text === 'ECONNREFUSED' || text === 'ECONNRESET'));

test('ingresses, worker and scorer are restarted in turn under load: no 202 is lost, and only clients of an ingress that restarts see it', async () => {
  let isOver = false;
  const over = (): boolean => isOver;
  const urls = [berth.url, other.url];
  const asking = urls.flatMap((url, index) => [
    ...['a', 'b'].map(async (lane) =>
      keepAsking(url, `async ${index} ${lane}`, over, {}, 'respond-async'),
    ),
    keepAsking(url, `sync ${index}`, over, {}),
    keepAsking(url, `stream ${index}`, over, { stream: true }),
  ]);
  const served = async (count: number): Promise<void> => {
    const before = model.generations().length;
    await eventually(() => model.generations().length >= before + count, {
      what: `${count} generations`,
      timeoutMs: 30_000,
    });
  };
  const restarts: { url: string; fromMs: number; toMs: number }[] = [];
  const during = async (url: string, restart: () => Promise<void>): Promise<void> => {
    const fromMs = performance.now();
    await restart();
    restarts.push({ url, fromMs, toMs: performance.now() });
  };
  await served(6);
  await during(berth.url, async () => {
    await berth.restartProcess('ingress');
    await berth.ready();
  });
  await served(6);
  for (const name of ['gpu', 'scorer'] as const) {
    await berth.restartProcess(name);
    await served(6);
  }
  await during(other.url, async () => other.restart());
  await served(6);
  isOver = true;
  const answers = (await Promise.all(asking)).flat();

  const errors = answers.filter(({ status }) => status !== 200 && status !== 202);
  const unexplained = errors.filter(
    (error) =>
      !isOfRestart(error) ||
      !restarts.some(
        ({ url, fromMs, toMs }) =>
          url === error.url && error.toMs >= fromMs && error.fromMs <= toMs,
      ),
  );
  expect(unexplained).toEqual([]);
  const whole = answers.filter(({ status, name }) => status === 200 && name.startsWith('stream'));
  expect(whole.filter(({ text }) => !text.endsWith('data: [DONE]\n\n'))).toEqual([]);

  const accepted = answers.filter(({ status }) => status === 202);
  expect(accepted.length).toBeGreaterThan(20);
  await eventually(async () => (await listed('?limit=1&state=waiting,running')).length === 0, {
    what: 'nothing to wait or run',
    timeoutMs: 20_000,
  });
  const states = new Map((await listed('?limit=100')).map(({ id, state }) => [id, state]));
  const ids = accepted.map(({ text }) => (JSON.parse(text) as JobObject).id);
  expect(ids.filter((id) => states.get(id) !== 'completed')).toEqual([]);
  const ran = namesOf(model.generations());
  expect(new Set(ran).size).toBe(ran.length);
  expect(accepted.filter(({ name }) => !ran.includes(name))).toEqual([]);
  expect(model.overlaps).toBe(0);
  process.stdout.write(
    `rolling restart: ${accepted.length} of ${answers.length} requests were 202, ${errors.length} refused by the one that restarted\n`,
  );
}, 120_000);
