import { expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decideAsItStands } from '../../src/policy/decide.ts';
import { Ledger } from '../../src/policy/ledger.ts';
import { memberId } from '../../src/policy/job.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob } from '../support/builders.ts';

const BASES = [-100, 0, 100];
const MEMBERS = ['ann', 'bob', 'cat'];

const jobs = fc.array(
  fc.record({
    member: fc.constantFrom(...MEMBERS),
    base: fc.constantFrom(...BASES),
    afterMs: fc.integer({ min: 0, max: 5000 }),
  }),
  { maxLength: 8 },
);
const next = fc.record({
  member: fc.constantFrom(...MEMBERS),
  base: fc.constantFrom(...BASES),
});

test('the pick as if a run had ended and a job had arrived is the pick after both, and leaves no trace', () => {
  fc.assert(
    fc.property(
      jobs,
      next,
      fc.array(fc.integer({ min: 1, max: 4000 }), { minLength: 1, maxLength: 6 }),
      (waiting, arriving, runs) => {
        const ledger = new Ledger(defaultRules);
        let nowMs = 1_000_000;
        for (const { member, base, afterMs } of waiting) {
          nowMs += afterMs;
          ledger.arrive(aJob({ member, base, arrivalMs: nowMs }));
        }
        for (const usedMs of runs) {
          const decision = decideAsItStands(ledger, null, nowMs);
          if (decision.kind === 'idle') return;
          ledger.dispatch(decision.pick, nowMs);
          nowMs += usedMs;
          const before = structuredClone(ledger.state());
          const job = aJob({ ...arriving, arrivalMs: nowMs, sequence: Number.MAX_SAFE_INTEGER });
          const foreseen = ledger.asIfEnded(
            nowMs,
            usedMs,
            () => JSON.stringify([decideAsItStands(ledger, null, nowMs), ledger.jobs.size]),
            job,
          );
          expect(ledger.state()).toEqual(before);
          const after = Ledger.from(ledger.state(), defaultRules);
          after.end(nowMs, usedMs);
          after.arrive(job);
          const found = [decideAsItStands(after, null, nowMs), after.jobs.size];
          expect(foreseen).toBe(JSON.stringify(found));
          ledger.end(nowMs, usedMs);
          ledger.arrive({ ...job, sequence: 10_000 + usedMs });
        }
      },
    ),
    { numRuns: 300 },
  );
});

test('with nothing running, what is asked as if a run had ended is asked of the books as they are', () => {
  const ledger = new Ledger(defaultRules);
  const asked = ledger.asIfEnded(1000, 10, () => ledger.jobs.size, aJob({ arrivalMs: 1000 }));
  expect(asked).toBe(0);
});

test('a member that was not prompt is not after a look at its next job', () => {
  const ledger = new Ledger(defaultRules);
  ledger.arrive(aJob({ member: 'ann', arrivalMs: 1000 }));
  ledger.arrive(aJob({ member: 'bob', arrivalMs: 1000 }));
  const decision = decideAsItStands(ledger, null, 1000);
  if (decision.kind !== 'run') throw new Error('nothing to run');
  ledger.dispatch(decision.pick, 1000);
  const job = aJob({ member: 'ann', arrivalMs: 2000 });
  ledger.asIfEnded(2000, 1000, () => undefined, job);
  expect(ledger.bands.get('normal')?.prompt.has(memberId('ann'))).toBe(false);
});
