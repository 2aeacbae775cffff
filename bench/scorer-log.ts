import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { eventually } from '../test/support/eventually.ts';
import type { BerthProcesses } from './berth-processes.ts';

/** Waits for the scorer's next pass over so many jobs, or a few less; returns how long it took, in seconds. */
export async function nextScorerPass(berth: BerthProcesses, waiting: number): Promise<number> {
  const seen = (await passes(berth)).length;
  const pass = await eventually(
    async () =>
      (await passes(berth)).slice(seen).find((each) => each.waiting >= waiting * 0.99) ?? null,
    { timeoutMs: 120_000, everyMs: 200, what: `a scorer pass over ${waiting} jobs` },
  );
  return pass.passMs / 1000;
}

async function passes(berth: BerthProcesses): Promise<{ passMs: number; waiting: number }[]> {
  const text = await readFile(path.join(berth.dataDir, 'output.log'), 'utf8');
  return text.split('\n').flatMap((line) => {
    if (!line.includes('"scorer.passed"')) return [];
    const { passMs, waiting } = JSON.parse(line) as { passMs: number; waiting: number };
    return [{ passMs, waiting }];
  });
}
