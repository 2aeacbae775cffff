import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { decideAsItStands, type Decision } from '../../src/policy/decide.ts';
import { memberId, type WaitingJob } from '../../src/policy/job.ts';
import { Ledger, type LedgerState } from '../../src/policy/ledger.ts';
import { applyEvent, type LedgerEvent } from '../../src/policy/ledger-event.ts';
import { defaultRules } from '../../src/policy/rules.ts';
import { aJob } from '../support/builders.ts';
import type { Happened } from './oracle.ts';
import { play, promptRules, someSteps } from './world.ts';

const START_MS = 1_800_000_000_000;

/** A state without what the events leave open: the order of jobs, backoffs that are over, and idle looks at the clock. */
function comparable(state: LedgerState): object {
  const settled = (job: WaitingJob): WaitingJob => {
    const { eligibleAtMs = 0, ...facts } = job;
    return eligibleAtMs > state.nowMs ? job : facts;
  };
  return {
    bands: state.bands,
    jobs: state.jobs.map(settled).toSorted((a, b) => a.sequence - b.sequence),
    run: state.run && { ...state.run, job: settled(state.run.job) },
    expected: state.expected && { ...state.expected, job: settled(state.expected.job) },
  };
}

/** What the queue would have written of it; `ledger` as it is after it, `folded` as it is before. */
function eventsOf(happened: Happened, ledger: Ledger, folded: Ledger): LedgerEvent[] {
  switch (happened.kind) {
    case 'arrive':
      return [{ kind: 'arrive', atMs: happened.job.arrivalMs, job: happened.job }];
    case 'remove': {
      const job = [...folded.jobs.values()].filter(({ id }) => id === happened.id);
      return job.map((each) => ({ kind: 'remove', atMs: folded.nowMs, job: each }));
    }
    case 'dispatch': {
      const { atMs } = happened;
      const due = [...folded.jobs.values()].filter(
        (job) => folded.isInBackoff(job.id) && (job.eligibleAtMs ?? 0) <= atMs,
      );
      const { job, passedOver } = ledger.run!;
      return [
        ...due.map((each) => ({ kind: 'wake' as const, atMs, job: each })),
        { kind: 'dispatch', atMs, job, passedOver },
      ];
    }
    case 'end':
      return [{ ...happened, job: folded.run!.job }];
    case 'handBack':
      return [{ ...happened, kind: 'back', job: folded.run!.job }];
  }
}

/** Events of a few jobs, members and models, whether or not they fit what came before. */
const someEvents: fc.Arbitrary<LedgerEvent[]> = fc
  .array(
    fc.record({
      kind: fc.constantFrom<LedgerEvent['kind'][]>(
        'arrive',
        'arrive',
        'arrive',
        'dispatch',
        'dispatch',
        'end',
        'back',
        'remove',
        'wake',
      ),
      which: fc.nat(11),
      afterMs: fc.oneof(fc.integer({ min: -2000, max: 900 }), fc.integer({ min: 0, max: 90_000 })),
      usedMs: fc.integer({ min: 0, max: 90_000 }),
      backoffMs: fc.integer({ min: -10, max: 20_000 }),
      passedOver: fc.subarray(['member-0', 'member-1', 'member-2', 'nobody']),
    }),
    { minLength: 3, maxLength: 60 },
  )
  .map((drawn) => {
    let atMs = START_MS;
    return drawn.map(({ kind, which, afterMs, usedMs, backoffMs, passedOver }): LedgerEvent => {
      atMs += afterMs;
      const job = aJob({
        id: `job-${which}`,
        member: `member-${which % 3}`,
        base: [-100, 0, 0, 100][which % 4]!,
        tier: which % 2 === 0 ? 'free' : 'pro',
        model: `model-${which % 2}`,
        arrivalMs: atMs,
        sequence: which,
      });
      const about = { atMs, job };
      if (kind === 'dispatch') return { ...about, kind, passedOver: passedOver.map(memberId) };
      if (kind === 'end') return { ...about, kind, usedMs };
      if (kind === 'back') return { ...about, kind, usedMs, eligibleAtMs: atMs + backoffMs };
      return { ...about, kind };
    });
  });

/** A ledger that has heard all of it. */
function folded(events: readonly LedgerEvent[]): Ledger {
  const ledger = new Ledger(defaultRules);
  for (const event of events) applyEvent(ledger, event);
  return ledger;
}

/** The decision with those passed over in one order. */
function inOrder(decision: Decision): Decision {
  if (decision.kind === 'idle') return decision;
  const passedOver = decision.pick.passedOver.toSorted();
  return { ...decision, pick: { ...decision.pick, passedOver } };
}

describe('the events of a queue', () => {
  test('add up to the ledger that was driven directly, after every one of them', () => {
    fc.assert(
      fc.property(someSteps(), (steps) => {
        const sum = new Ledger(promptRules);
        play(steps, {
          startMs: START_MS,
          afterEvent: (ledger, happened) => {
            for (const event of eventsOf(happened.at(-1)!, ledger, sum)) applyEvent(sum, event);
            sum.wake(ledger.nowMs);
            expect(comparable(sum.state())).toEqual(comparable(ledger.state()));
          },
        });
      }),
      { numRuns: 100 },
    );
  });

  test('count once, however often they come in a row, and in no order are too much', () => {
    fc.assert(
      fc.property(someEvents, (events) => {
        const ledger = new Ledger(defaultRules);
        for (const event of events) {
          applyEvent(ledger, event);
          const once = ledger.state();
          applyEvent(ledger, event);
          expect(ledger.state()).toEqual(once);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('go on from a state in the middle as if nothing had been in between', () => {
    fc.assert(
      fc.property(someEvents, fc.nat(60), (events, at) => {
        const ledger = folded(events.slice(0, at));
        ledger.wake(ledger.nowMs);
        const other = Ledger.from(
          JSON.parse(JSON.stringify(ledger.state())) as LedgerState,
          defaultRules,
        );
        for (const event of events.slice(at)) {
          applyEvent(ledger, event);
          applyEvent(other, event);
        }
        expect(comparable(other.state())).toEqual(comparable(ledger.state()));
      }),
      { numRuns: 200 },
    );
  });
});

describe('asking as if the run had ended', () => {
  const resident = fc.constantFrom(null, 'model-0', 'model-1');
  const ending = fc.record({
    afterMs: fc.oneof(fc.constant(0), fc.integer({ min: -500, max: 90_000 })),
    usedMs: fc.integer({ min: 0, max: 90_000 }),
  });

  test('finds what a copy finds that really ended it, and leaves no trace', () => {
    fc.assert(
      fc.property(someEvents, ending, resident, (events, { afterMs, usedMs }, model) => {
        const ledger = new Ledger(defaultRules);
        for (const event of events) {
          applyEvent(ledger, event);
          ledger.wake(ledger.nowMs);
          const nowMs = ledger.nowMs + afterMs;
          const before = ledger.state();
          const copy = Ledger.from(before, defaultRules);
          copy.end(nowMs, usedMs);
          const ask = (of: Ledger) => ({
            state: of.state(),
            decision: inOrder(decideAsItStands(of, model, nowMs)),
          });
          const found = ledger.asIfEnded(nowMs, usedMs, () => ask(ledger));
          const isIdle = before.run === null;
          expect(found).toEqual(isIdle ? ask(ledger) : ask(copy));
          expect(ledger.state()).toEqual(before);
          expect(inOrder(decideAsItStands(ledger, model, nowMs))).toEqual(
            inOrder(decideAsItStands(Ledger.from(before, defaultRules), model, nowMs)),
          );
        }
      }),
      { numRuns: 150 },
    );
  });
});
