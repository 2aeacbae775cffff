import { bullClass } from '../src/adapters/redis/bull-class.ts';
import { MODELS } from './model-server.ts';

/** A queue with one worker, as the measurements see it. */
export interface MeasuredQueue {
  /** Goes along as `x-bench`, so that the model server knows whose request arrives. */
  readonly lane: string;
  /** Adds one job; durable when it resolves. */
  submit(): Promise<void>;
  /** Adds many jobs as fast as it can. */
  fill(count: number): Promise<void>;
  /** Jobs that wait. */
  waiting(): Promise<number>;
}

/** Whose jobs a queue is given, in turn. */
export interface JobMix {
  readonly members: number;
  /** How many of the model server's models they want, in turn. */
  readonly models: number;
}

/** One member, one model. */
export const UNIFORM: JobMix = { members: 1, models: 1 };

/** What tells one job of a measurement from another. */
export interface BenchJob {
  readonly member: string;
  readonly tier: string;
  readonly model: string;
  /** Of one of the three bands. */
  readonly points: number;
  readonly body: string;
}

const POINTS = [-100, 0, 100] as const;
const TIERS = ['free', 'pro', 'max'] as const;

/** The n-th job of a mix: bands and members in turn; each member has one tier and wants all models in turn. */
export function benchJob(count: number, { members, models }: JobMix): BenchJob {
  const member = count % members;
  const model = MODELS[Math.floor(count / members) % models] ?? MODELS[0];
  return {
    member: members === 1 ? 'shared' : `m${member}`,
    tier: TIERS[member % TIERS.length] ?? 'free',
    model,
    points: POINTS[count % POINTS.length] ?? 0,
    body: BODIES.get(model) ?? JOB_BODY,
  };
}

const chatFor = (model: string): string =>
  JSON.stringify({ model, messages: [{ role: 'user', content: 'x'.repeat(950) }] });
const BODIES = new Map(MODELS.map((model) => [model, chatFor(model)]));

/** A kilobyte of chat, the same for both queues. */
export const JOB_BODY = chatFor(MODELS[0]);

/** BullMQ's number for a job of these points, so that both queues order bands alike. */
export const jobPriority = (points: number): number => bullClass(points);

/** Flat headers of a job's request. */
export const jobHeaders = (lane: string, model: string = MODELS[0]): string[] => [
  'content-type',
  'application/json',
  'x-bench',
  lane,
  'x-bench-model',
  model,
];
