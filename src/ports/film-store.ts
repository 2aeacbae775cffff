import type {
  ClaimedJob,
  FilmShot,
  IdempotencyKey,
  JobFacts,
  MemberCaps,
  NewJob,
} from './job-queue.ts';
import type { ResponseLogWriter } from './response-log.ts';

/** Where a film stands. `running`: exactly one of its shots waits or runs. */
export type FilmState = 'running' | 'paused' | 'failed' | 'completed' | 'cancelled';

/** A shot as it becomes a job: everything but the caps, which bind the film when it is made. */
export type ShotJob = Omit<NewJob, 'caps'> & {
  facts: JobFacts & { film: FilmShot };
  /** Attempts it gets in all. */
  maxAttempts: number;
};

/** A shot that was made ready, or why it could not be; nothing at all when the film has no further one. */
export type NextShot = { readonly job: ShotJob } | { readonly reason: string };

/** What a film consists of when it is made. */
export interface NewFilm {
  /** Lower-case UUIDv4. */
  readonly id: string;
  readonly member: string;
  readonly total: number;
  /** Caps of its member. */
  readonly caps: MemberCaps;
  readonly first: ShotJob;
  readonly idempotency?: IdempotencyKey | undefined;
}

/** What became of one shot, or where it stands. */
export interface ShotRecord {
  /** null: it is no job yet, or was none. */
  readonly jobId: string | null;
  readonly outcome: string | null;
  /** How often it was tried, repeats after a failure counted. */
  readonly tries: number;
}

/** A film as it is kept. */
export interface FilmRecord {
  readonly id: string;
  readonly member: string;
  readonly state: FilmState;
  readonly total: number;
  /** Shots that are over. */
  readonly done: number;
  /** The job of shot `done + 1`; null while it is still to be made, and when the film is over. */
  readonly jobId: string | null;
  /** The job whose result the next shot takes values from. */
  readonly lastJobId: string | null;
  /** Why it stands still; empty while it runs. */
  readonly reason: string;
  /** Grows with every change. */
  readonly revision: number;
  readonly createdMs: number;
  /** GPU time of the shots completed so far, in ms, and how many they are. */
  readonly gpuMs: number;
  readonly runs: number;
  /** Whether the current job has the GPU. */
  readonly isActive: boolean;
}

/** What a change of a film came to; a state: it cannot be done in that one. */
export type FilmAnswer = 'ok' | 'gone' | 'make' | 'changed' | 'runs' | FilmState;

/** A shot for a film that has `done` shots behind it. */
export interface ShotOffer {
  readonly done: number;
  readonly next: NextShot | undefined;
}

/** Films as the ingress and the scorer use them. Methods throw GatewayError `redis_unavailable`. */
export interface FilmStore {
  /** Keeps templates, sealed, of a film that is to be made; they vanish by themselves if it never is. */
  stage(filmId: string, from: number, templates: readonly Buffer[]): Promise<void>;
  /**
   * Resolves to the id of the film that stands: this one, or the first with its Idempotency-Key. Throws GatewayError
   * `queue_full`, `member_queue_full`, `idempotency_mismatch` too.
   */
  create(film: NewFilm): Promise<string>;
  /** The film of an Idempotency-Key, if there is one. Throws GatewayError `idempotency_mismatch` too. */
  known(key: IdempotencyKey): Promise<string | undefined>;
  read(filmId: string): Promise<FilmRecord | undefined>;
  /** Each shot from the first to the last. */
  shots(film: FilmRecord): Promise<ShotRecord[]>;
  /** The sealed template of a shot, counted from 1. */
  template(filmId: string, shot: number): Promise<Buffer | undefined>;
  /** Ids of a member's films, newest first; null: everybody's. */
  list(member: string | null, limit: number): Promise<string[]>;
  pause(filmId: string): Promise<FilmAnswer>;
  /** `from`: the state it is to leave. `make`: offer its shot, made anew. */
  resume(filmId: string, from: 'paused' | 'failed', offer?: ShotOffer): Promise<FilmAnswer>;
  skip(filmId: string, offer: ShotOffer): Promise<FilmAnswer>;
  cancel(filmId: string): Promise<FilmAnswer>;
  /** Films that should have a shot waiting or running. */
  running(): Promise<string[]>;
  /** Sees to it that they have; `make` as for `resume`. */
  repair(filmId: string, offer?: ShotOffer): Promise<'ok' | 'repaired' | 'make'>;
}

/** The worker's view of a job that is a shot. */
export interface ShotRun {
  /** Where the run is to write its answer. */
  readonly log: ResponseLogWriter;
  /** A fault in an answer that a job of its own would have been content with. */
  fault(): { code: string; message: string } | undefined;
  /** The shot after this one; undefined when this was the last. To be asked when the run has completed. */
  next(): Promise<NextShot | undefined>;
}

/** Attends a job's run if it is a shot of a film. */
export type AttendShot = (job: ClaimedJob, log: ResponseLogWriter) => ShotRun | undefined;

/** Reads the answers of jobs that have ended. */
export interface ResultReader {
  /** The whole body of a completed job's answer; undefined when it is not kept any more. */
  bodyOf(jobId: string): Promise<Buffer | undefined>;
}
