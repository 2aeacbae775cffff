import { randomUUID } from 'node:crypto';
import type { JobObject } from '../gateway/job-object.ts';
import { jsonOf } from './berth-client.ts';
import type { BerthClient } from './berth-client.ts';
import { CommandError, EXIT } from './command-error.ts';
import { jobLine } from './job-news.ts';
import { printable } from './printable.ts';
import { submitRequest } from './submit-request.ts';
import type { SubmitOptions } from './submit-request.ts';
import type { Terminal } from './terminal.ts';
import { exitOf, watchJob } from './watch.ts';

/** How a job is submitted, beside what it is. */
export interface SubmitCommand extends SubmitOptions {
  readonly idempotencyKey?: string;
  readonly wait?: boolean;
  readonly json?: boolean;
}

/**
 * `berth submit`: makes a job and prints its id, or with `--json` the job. A submission whose answer is lost is sent again
 * under the same Idempotency-Key. With `--wait` it follows the job too, on standard error.
 */
export async function submit(
  client: BerthClient,
  terminal: Terminal,
  path: string,
  options: SubmitCommand,
): Promise<number> {
  if (!path.startsWith('/'))
    throw new CommandError('a path begins with a slash, as in /v1/images/generations');
  const { headers, body } = submitRequest(options);
  const key = options.idempotencyKey ?? randomUUID();
  terminal.ifInterrupted(
    `the job may be submitted already; the same command with --idempotency-key ${key} makes no second one`,
  );
  const answer = await client.call(path, {
    method: 'POST',
    headers: { ...headers, prefer: 'respond-async', 'idempotency-key': key },
    body,
  });
  if (answer.statusCode !== 202) {
    terminal.out.write(Buffer.from(await answer.body.arrayBuffer()));
    terminal.say(`berth: ${path} was answered at once (${answer.statusCode}); that made no job`);
    return EXIT.refused;
  }
  const job = await jsonOf<JobObject>(answer);
  const line = jobLine({ ...job, eta: job.eta_seconds, bytes: 0, atMs: 0, job });
  const isJson = options.json === true;
  if (options.wait !== true) {
    terminal.print(isJson ? JSON.stringify(job, null, 2) : job.id);
    terminal.say(printable(`${line}; band ${job.band}, priority ${job.base_priority}`));
    return 0;
  }
  if (!isJson) terminal.print(job.id);
  const news = await watchJob(client, terminal, job.id, terminal.err);
  if (isJson) terminal.print(JSON.stringify(news?.job ?? job, null, 2));
  return exitOf(news);
}
