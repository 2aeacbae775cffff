import type { Command } from 'commander';
import { cancel } from './cancel.ts';
import { idArgument, runWithClient, several, withClient } from './client-command.ts';
import { explain } from './explain.ts';
import { queue } from './queue.ts';
import type { QueueOptions } from './queue.ts';
import { result } from './result.ts';
import type { ResultOptions } from './result.ts';
import { submit } from './submit.ts';
import type { SubmitCommand } from './submit.ts';
import { watch } from './watch.ts';

/** Adds `submit`, `watch`, `result`, `explain`, `cancel` and `queue`. */
export function addJobCommands(berth: Command): void {
  withClient(berth.command('submit'))
    .description('Makes a job that outlives this command, and prints its id.')
    .argument('<path>', 'what is asked for, for example /v1/images/generations')
    .option('--model <model>', 'put into the JSON or the form')
    .option('--data <json>', 'the body: JSON, @file, or - for standard input')
    .option('--form <field>', 'name=value or name=@file, several times: a form', several)
    .option('--header <header>', '"Name: value", several times', several)
    .option('--intent <intent>', 'what it is for: chat, image, video, film-shot, …')
    .option('--priority <priority>', 'a whole number, or the name of a band')
    .option('--tier <tier>', 'of the member that a trusted key speaks for')
    .option(
      '--idempotency-key <key>',
      'as often as it is submitted, it is one job; default: a new one',
    )
    .option('--deadline <when>', 'of no use if it starts later: seconds, or a time of RFC 3339')
    .option('--webhook <url>', 'told of its end')
    .option('--wait', 'follow it to its end')
    .option('--json', 'print the job instead of its id')
    .action(async (path: string, options: SubmitCommand) =>
      runWithClient(options, (client, terminal) => submit(client, terminal, path, options)),
    );

  withClient(berth.command('watch'))
    .description('Follows a job to its end; 0 when it has completed.')
    .argument('<job>', 'its id', idArgument)
    .action(async (id: string, options: object) =>
      runWithClient(options, (client, terminal) => watch(client, terminal, id)),
    );

  withClient(berth.command('result'))
    .description('The answer of a job that has ended, byte by byte.')
    .argument('<job>', 'its id', idArgument)
    .option(
      '-o, --output <file>',
      'a file instead of standard output; goes on with one that broke off',
    )
    .option('--force', 'replace a file of that name')
    .action(async (id: string, options: ResultOptions) =>
      runWithClient(options, (client, terminal) => result(client, terminal, id, options)),
    );

  withClient(berth.command('explain'))
    .description('Why a job waits, or waited: its points, who is ahead, what the wait was made of.')
    .argument('<job>', 'its id', idArgument)
    .option('--json', 'as Berth answers')
    .action(async (id: string, options: { json?: boolean }) =>
      runWithClient(options, (client, terminal) => explain(client, terminal, id, options)),
    );

  withClient(berth.command('cancel'))
    .description('Ends a job, waiting or running.')
    .argument('<job>', 'its id', idArgument)
    .option('--json', 'print the job')
    .action(async (id: string, options: { json?: boolean }) =>
      runWithClient(options, (client, terminal) => cancel(client, terminal, id, options)),
    );

  withClient(berth.command('queue'))
    .description('What runs, and what waits in which order.')
    .option('--json', 'as Berth answers')
    .option('--watch', 'again at each change')
    .action(async (options: QueueOptions) => runWithClient(options, queue));
}
