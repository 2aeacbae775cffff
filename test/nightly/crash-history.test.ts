import { expect, test } from '@jest/globals';
import { crashReport } from '../support/crash-report.ts';

test('20 producers while ingress, worker, scorer and Redis are killed for two minutes: what was seen breaks no promise', async () => {
  expect(await crashReport(20, 120_000)).toEqual([]);
}, 300_000);
