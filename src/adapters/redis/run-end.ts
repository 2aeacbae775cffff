import type { NextShot } from '../../ports/film-store.ts';
import type { ClaimedJob, RunResult } from '../../ports/job-queue.ts';
import type { RedisResponseLogWriter } from './redis-response-log-writer.ts';
import { endEntry } from './response-log-format.ts';
import type { StoredEntry } from './response-log-format.ts';

/** A run that is over for good, as it is to leave `active`. */
export interface Settlement {
  kind: 'settle';
  id: string;
  token: string;
  outcome: string;
  code: string;
  /** What is said of the end beside its code; empty when completed. */
  message: string;
  /** Part of the run in which the model server loaded the model. */
  swapMs: number;
  /** Remove every trace: nobody can ask for it any more. */
  forget: boolean;
  /** Keep the request, so that an operator can run the job again. */
  keepPayload: boolean;
  retainMs: number;
  gpuMs: number;
  tail: StoredEntry[];
  /** The shot after this one, for a film. */
  next: NextShot | undefined;
  /** Called once when the settlement is stored. */
  onStored: () => void;
}

/** A run that is to be repeated. */
export interface Postponement {
  kind: 'postpone';
  id: string;
  token: string;
  delayMs: number;
  gpuMs: number;
  onStored: () => void;
}

/** How long records and answers are kept, in ms. */
export interface RunRetention {
  syncMs: number;
  completedMs: number;
  failedMs: number;
}

/** A run that has just ended, and what is known of it. */
export interface EndedRun {
  job: ClaimedJob;
  token: string;
  log: RedisResponseLogWriter;
  result: RunResult;
  ranMs: number;
  /** As in `Settlement`; at most `ranMs` of it counts. */
  loadedMs: number;
  next: NextShot | undefined;
  onStored: () => void;
}

/** The end of a run that did not have to be repeated or handed back. */
export function settlementOf(
  run: EndedRun,
  result: Exclude<RunResult, { kind: 'retry' | 'handed-back' }>,
  retention: RunRetention,
): Settlement {
  const { job, token, log, ranMs, loadedMs, next, onStored } = run;
  const isCompleted = result.kind === 'completed';
  const code = isCompleted ? '' : result.code;
  const message = messageOf(result);
  const end = isCompleted
    ? ({ ok: true, bytes: log.bytes } as const)
    : ({ ok: false, code, message } as const);
  return {
    ...{ kind: 'settle', id: job.id, token, outcome: result.kind, code, message },
    swapMs: Math.min(ranMs, Math.round(loadedMs)),
    forget: result.kind === 'cancelled' && result.forget,
    keepPayload: result.kind === 'failed',
    gpuMs: ranMs,
    retainMs: retainMs(job, result, retention),
    tail: [...log.tail(), endEntry(job.run, end)],
    ...{ next, onStored },
  };
}

function messageOf(result: RunResult): string {
  if (result.kind === 'failed') return result.message;
  return result.kind === 'completed' ? '' : 'the job was cancelled';
}

function retainMs({ facts }: ClaimedJob, { kind }: RunResult, retention: RunRetention): number {
  if (kind === 'failed') return retention.failedMs;
  return kind === 'completed' && facts.mode === 'async' ? retention.completedMs : retention.syncMs;
}
