import type { Redis } from 'ioredis';
import type { JobPlace } from '../../ports/job-queue.ts';
import type { PoolKeys } from './keys.ts';

/** How long questions are gathered before they are asked together, in ms. */
const GATHER_MS = 50;

interface Question {
  readonly promise: Promise<JobPlace>;
  readonly resolve: (place: JobPlace) => void;
  readonly reject: (error: unknown) => void;
}

/** Where jobs are. Each waiting client asks for its own job now and then; Redis is asked for all of them at once. */
export class JobPlaces {
  private readonly redis: Redis;
  private readonly keys: PoolKeys;
  private questions = new Map<string, Question>();

  constructor(redis: Redis, keys: PoolKeys) {
    this.redis = redis;
    this.keys = keys;
  }

  /** Rejects with whatever the connection ran into. */
  async of(jobId: string): Promise<JobPlace> {
    let question = this.questions.get(jobId);
    if (question === undefined) {
      if (this.questions.size === 0) setTimeout(() => void this.ask(), GATHER_MS);
      question = newQuestion();
      this.questions.set(jobId, question);
    }
    return question.promise;
  }

  private async ask(): Promise<void> {
    const { questions } = this;
    this.questions = new Map();
    try {
      const places = await this.read([...questions.keys()]);
      for (const [jobId, question] of questions) question.resolve(places.get(jobId) ?? 'absent');
    } catch (error) {
      for (const question of questions.values()) question.reject(error);
    }
  }

  private async read(jobIds: readonly string[]): Promise<Map<string, JobPlace>> {
    const { redis, keys } = this;
    const pipeline = redis.pipeline();
    pipeline.lrange(`${keys.queue}active`, 0, -1);
    for (const id of jobIds) pipeline.hmget(`${keys.queue}${id}`, 'cls', 'finishedOn');
    const replies = (await pipeline.exec()) ?? [];
    const [active, ...rest] = replies.map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
    const running = new Set(active as string[]);
    return new Map(
      jobIds.map((id, index) => {
        const [cls, finishedOn] = (rest[index] ?? []) as (string | null)[];
        if (cls === null || cls === undefined) return [id, 'absent'];
        if (running.has(id)) return [id, 'running'];
        return [id, finishedOn ? 'ended' : 'waiting'];
      }),
    );
  }
}

function newQuestion(): Question {
  let resolve: Question['resolve'] = () => undefined;
  let reject: Question['reject'] = () => undefined;
  const promise = new Promise<JobPlace>((...both) => ([resolve, reject] = both));
  return { promise, resolve, reject };
}
