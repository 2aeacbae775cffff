/** What the policy alone costs, in a process of its own, so that no other work shares its memory. Sends `figures` of all settings. */
import { writeSnapshot } from '../src/adapters/redis/ledger-snapshot.ts';
import { queueView, viewFor } from '../src/gateway/queue-view.ts';
import type { QueueView } from '../src/gateway/queue-view.ts';
import { nearestBand } from '../src/policy/band.ts';
import { decide, decideAsItStands, displacedBy } from '../src/policy/decide.ts';
import { jobId, memberId } from '../src/policy/job.ts';
import type { WaitingJob } from '../src/policy/job.ts';
import { Ledger } from '../src/policy/ledger.ts';
import { planAhead } from '../src/policy/plan.ts';
import { defaultRules } from '../src/policy/rules.ts';
import { MEMBERS, MODEL_COUNT, settingName, WAITING } from './backlog-settings.ts';
import type { Setting } from './backlog-settings.ts';
import { benchJob } from './measured-queue.ts';
import { MODELS } from './model-server.ts';
import { quantile } from './statistics.ts';

const CYCLES = 300;
const RUN_MS = 3;
/** Below so many jobs the first plan is not the one that counts: the code has not been compiled yet. */
const WARM = 1000;
const duration = () => ({ p50Ms: 5000, p90Ms: 8000 });

const spentMs = (work: () => void): number => {
  const startedAt = performance.now();
  work();
  return performance.now() - startedAt;
};

function jobOf(count: number, members: number, nowMs: number): WaitingJob {
  const { member, tier, model, points } = benchJob(count, { members, models: MODEL_COUNT });
  return {
    id: jobId(`00000000-0000-4000-8000-${String(count).padStart(12, '0')}`),
    member: memberId(member),
    tier,
    band: nearestBand(points, defaultRules),
    base: points,
    model,
    arrivalMs: nowMs,
    sequence: count,
  };
}

function measure({ waiting, members }: Setting): Record<string, number> {
  const ledger = new Ledger(defaultRules);
  let nowMs = 1_800_000_000_000;
  let count = 0;
  const arrive = (): void => {
    count += 1;
    ledger.arrive(jobOf(count, members, nowMs));
  };
  while (count < waiting) arrive();
  const decideMs: number[] = [];
  const asIfEndedMs: number[] = [];
  const displacedMs: number[] = [];
  let model: string = MODELS[0];
  // As a worker: what would be next is asked while a job runs and another one arrives.
  for (let cycle = 0; cycle < CYCLES; cycle += 1) {
    const startedAt = performance.now();
    const decision = decide(ledger, model, nowMs);
    decideMs.push(performance.now() - startedAt);
    if (decision.kind === 'idle') throw new Error('nothing waits');
    const { pick } = decision;
    displacedMs.push(spentMs(() => displacedBy(ledger, pick, model)));
    ledger.dispatch(pick, nowMs);
    ({ model } = pick.job);
    arrive();
    nowMs += RUN_MS;
    const ask = (): void => void decideAsItStands(ledger, model, nowMs);
    asIfEndedMs.push(spentMs(() => ledger.asIfEnded(nowMs, RUN_MS, ask)));
    ledger.end(nowMs, RUN_MS);
  }
  const outlook = { nowMs, residentModel: model, duration };
  let planned = waiting < WARM ? planAhead(ledger, outlook) : [];
  const planMs = spentMs(() => (planned = planAhead(ledger, outlook)));
  const facts = { ...outlook, version: '1-1' };
  let view = '';
  const viewMs = spentMs(() => (view = JSON.stringify(queueView(ledger, planned, facts))));
  const mask = (): void =>
    void JSON.stringify(
      viewFor(JSON.parse(view) as QueueView, benchJob(1, { members, models: 1 }).member),
    );
  const place = { version: 1, epoch: '1' };
  return {
    'policy.decide': quantile(decideMs, 0.5),
    'policy.as-if-ended': quantile(asIfEndedMs, 0.5),
    'policy.displaced': quantile(displacedMs, 0.5),
    'policy.plan': planMs,
    'policy.view': viewMs,
    'policy.view-masked': spentMs(mask),
    'policy.view-kb': view.length / 1000 / waiting,
    'policy.snapshot': spentMs(() => void writeSnapshot(place, ledger.state())),
  };
}

const settings = MEMBERS.flatMap((members) => WAITING.map((waiting) => ({ waiting, members })));
const figures = Object.fromEntries(
  settings.map((setting) => [settingName(setting), measure(setting)]),
);
process.send?.({ type: 'figures', figures });
