import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser, Locator, Page } from 'playwright-core';
import { BerthSystem } from '../support/berth-system.ts';
import { listenTo, startBrowser } from '../support/browser.ts';
import {
  hangUp,
  startDemoModelServer,
  type Gate,
  type ScriptedModelServer,
} from '../support/demo-model-server.ts';
import { eventually } from '../support/eventually.ts';

const PICTURE = fileURLToPath(new URL('../../docs/architecture/board.png', import.meta.url));
/** Base priorities of the jobs that wait while the test looks. */
const WAITING = ['interactive', '0', 'batch'];

let modelServer: ScriptedModelServer;
let berth: BerthSystem;
let browser: Browser;
let gate: Gate | undefined;
const open: Promise<Response>[] = [];

beforeAll(async () => {
  browser = await startBrowser();
  modelServer = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: modelServer.url });
}, 60_000);

afterAll(async () => {
  gate?.release();
  await Promise.allSettled(open);
  await browser.close();
  await berth.stop();
  await modelServer.close();
});

async function chat(priority: string, member: string): Promise<Response> {
  return fetch(`${berth.url}/v1/chat/completions`, {
    method: 'POST',
    headers: {
      'Content-Type': 'application/json',
      'X-LlamaSwap-Priority': priority,
      'X-Berth-Member': member,
    },
    body: JSON.stringify({
      model: 'demo-chat-small',
      messages: [{ role: 'user', content: `a prompt nobody else reads: ${priority}` }],
      max_tokens: 3,
    }),
  });
}

async function waitingCount(): Promise<number> {
  const response = await fetch(`${berth.url}/berth/board/api/queues`);
  const { queues } = (await response.json()) as { queues: { counts: Record<string, number> }[] };
  return queues[0]?.counts.prioritized ?? 0;
}

async function openPage(): Promise<Page> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 1700 } });
  return context.newPage();
}

/** The buttons of a job are pictures without names; what they do appears when the pointer rests on them. */
async function buttonWithTip(page: Page, tip: string): Promise<Locator> {
  for (const button of await page.locator('button:not([aria-label])').all()) {
    if ((await button.innerText()) !== '') continue;
    await button.hover();
    const isIt = await page
      .getByText(tip, { exact: true })
      .waitFor({ timeout: 1500 })
      .then(
        () => true,
        () => false,
      );
    if (isIt) return button;
  }
  throw new Error(`no button says ${tip}`);
}

test('a job that failed is retried by its button and completes', async () => {
  const takeBack = modelServer.fault(hangUp(), { times: Infinity });
  const failed = await chat('batch', 'film');
  takeBack();
  expect(failed.status).toBe(502);
  const id = String(failed.headers.get('x-berth-job-id'));
  const page = await openPage();
  const { errors } = listenTo(page);
  await page.goto(`${berth.url}/berth/board/queue/gpu?status=failed`);
  await page.getByText(id).first().waitFor();
  await (await buttonWithTip(page, 'Retry')).click();
  await page.getByRole('button', { name: /confirm/i }).click();
  await eventually(
    async () => {
      const reply = await fetch(`${berth.url}/berth/board/api/queues/gpu/${id}`);
      return ((await reply.json()) as { status: string }).status === 'completed';
    },
    { what: 'the retried job to complete', timeoutMs: 10_000 },
  );
  expect(modelServer.generations().filter(({ status }) => status === 200)).toHaveLength(1);
  expect(errors).toEqual([]);
  await page.context().close();
}, 60_000);

test('the board shows the queue and its jobs under its own rules, without a complaint', async () => {
  gate = modelServer.hold();
  open.push(chat('0', 'mort'));
  await gate.arrived;
  for (const priority of WAITING) open.push(chat(priority, 'mort'));
  await eventually(async () => (await waitingCount()) === WAITING.length, { what: 'waiting jobs' });

  const page = await openPage();
  const { errors, requests } = listenTo(page);
  const response = await page.goto(`${berth.url}/berth/board`);
  expect(response?.headers()['content-security-policy']).toContain("default-src 'self'");
  await page.getByText('gpu', { exact: true }).first().waitFor();
  await page.goto(`${berth.url}/berth/board/queue/gpu?status=prioritized`);
  await page
    .getByText('/v1/chat/completions')
    .nth(WAITING.length - 1)
    .waitFor();
  const text = await page.locator('body').innerText();
  expect(text).not.toContain('a prompt nobody else reads');
  expect(requests.filter((url) => new URL(url).origin !== berth.url)).toEqual([]);
  expect(errors).toEqual([]);
  if (process.env.BERTH_SCREENSHOTS === '1') await page.screenshot({ path: PICTURE });
  await page.context().close();
});
