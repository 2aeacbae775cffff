import type { TakenWork } from '../../ports/job-queue.ts';
import { FencedError } from '../../ports/response-log.ts';
import type { ResponseHead } from '../../ports/response-log.ts';
import type { GpuOwner } from './gpu-owner.ts';
import type { PoolKeys } from './keys.ts';
import type { Scripts } from './scripts.ts';

/** What keeping needs; `scripts` on a `patient` connection. */
export interface WorkKeeping {
  scripts: Scripts;
  keys: PoolKeys;
  owner: GpuOwner;
}

/** Keeps work beside its job's request until the job ends. Throws FencedError when another worker owns the GPU. */
export async function keepWork(
  jobId: string,
  { id, head, body }: TakenWork,
  { scripts, keys, owner }: WorkKeeping,
): Promise<void> {
  const own = JSON.stringify({ pool: keys.pool, fence: owner.fence, id: jobId });
  const work = JSON.stringify({ id, head, body: body.toString('base64') });
  if ((await scripts.run('keep-work', keys.pool, own, work)) !== 'ok')
    throw new FencedError('another worker owns the GPU');
}

/** Kept work as it is read back with its job. */
export function parseWork(stored: Buffer): TakenWork {
  const { id, head, body } = JSON.parse(stored.toString()) as {
    id: string;
    head: ResponseHead;
    body: string;
  };
  return { id, head, body: Buffer.from(body, 'base64') };
}
