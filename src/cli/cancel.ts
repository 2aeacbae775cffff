import type { JobObject } from '../gateway/job-object.ts';
import type { BerthClient } from './berth-client.ts';
import type { Terminal } from './terminal.ts';

/** `berth cancel`: ends a job, waiting or running, and says how it stands; one that had ended stays as it was. */
export async function cancel(
  client: BerthClient,
  terminal: Terminal,
  id: string,
  { json = false }: { json?: boolean },
): Promise<number> {
  const path = `/berth/jobs/${encodeURIComponent(id)}`;
  const job = await client.json<JobObject>(path, { method: 'DELETE' });
  terminal.print(json ? JSON.stringify(job, null, 2) : `${job.id} ${job.state}`);
  return 0;
}
