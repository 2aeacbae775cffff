import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from '@jest/globals';
import type { Browser } from 'playwright-core';
import { BerthSystem } from '../support/berth-system.ts';
import { listenTo, startBrowser } from '../support/browser.ts';
import { startDemoModelServer, type ScriptedModelServer } from '../support/demo-model-server.ts';

const PICTURE = fileURLToPath(new URL('../../docs/architecture/api.png', import.meta.url));

let modelServer: ScriptedModelServer;
let berth: BerthSystem;
let browser: Browser;

beforeAll(async () => {
  browser = await startBrowser();
  modelServer = await startDemoModelServer();
  berth = await BerthSystem.start({ modelServerUrl: modelServer.url });
}, 60_000);

afterAll(async () => {
  await browser.close();
  await berth.stop();
  await modelServer.close();
});

test('the page shows every route and what it takes, without a complaint or a foreign request', async () => {
  const context = await browser.newContext({ viewport: { width: 1200, height: 760 } });
  const page = await context.newPage();
  const { errors, requests } = listenTo(page);
  await page.goto(`${berth.url}/berth/docs`);
  const routes = page.locator('.opblock-summary-path');
  await routes.getByText('/berth/jobs/{id}/result').waitFor();
  const document = (await (await fetch(`${berth.url}/berth/openapi.json`)).json()) as {
    paths: Record<string, object>;
  };
  const shown = await Promise.all(
    (await routes.all()).map(async (route) => String(await route.getAttribute('data-path'))),
  );
  expect([...new Set(shown)].toSorted()).toEqual(
    [...Object.keys(document.paths), 'jobEnded'].toSorted(),
  );
  const list = page.locator('#operations-jobs-listJobs');
  await list.locator('.opblock-summary').first().click();
  await list.getByText('Only jobs in one of these states.').waitFor();
  await list.getByRole('button', { name: 'Try it out' }).click();
  await list.getByRole('button', { name: 'Execute' }).click();
  await list.locator('.live-responses-table').getByText('"has_more"').waitFor();
  expect(requests.filter((url) => !url.startsWith('data:'))).toContain(
    `${berth.url}/berth/openapi.json`,
  );
  const foreign = requests.filter(
    (url) => !url.startsWith('data:') && new URL(url).origin !== berth.url,
  );
  expect(foreign).toEqual([]);
  expect(errors).toEqual([]);
  if (process.env.BERTH_SCREENSHOTS === '1') {
    await list.locator('.opblock-summary').first().click();
    await page.evaluate(
      'document.activeElement.blur(); document.querySelector("#operations-tag-jobs").scrollIntoView()',
    );
    await page.mouse.move(0, 0);
    await page.screenshot({ path: PICTURE });
  }
  await context.close();
}, 60_000);
