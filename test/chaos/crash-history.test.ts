import { expect, test } from '@jest/globals';
import { crashReport } from '../support/crash-report.ts';

test('20 producers while ingress, worker, scorer and Redis are killed at random: what was seen breaks no promise', async () => {
  expect(await crashReport(20, 25_000)).toEqual([]);
}, 90_000);
