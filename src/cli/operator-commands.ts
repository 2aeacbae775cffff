import { type Command, InvalidArgumentError } from 'commander';
import { CommandError } from './command-error.ts';
import type { KeyEntry } from './key-list.ts';

interface AddOptions extends Omit<KeyEntry, 'name' | 'sha256' | 'caps' | 'maxPriority'> {
  /** Commander hands out no null. */
  maxPriority?: number | 'none';
}

const out = (text: string): void => void process.stdout.write(text);
/** Beside the result, so that the result alone can be piped. */
const say = (text: string): void => void process.stderr.write(`${text}\n`);

/**
 * Adds what an operator does to Berth's configuration and records: `keys`, `trace` and `webhooks`. What they need is loaded
 * when they run: it takes longer than all that the other commands do.
 */
export function addOperatorCommands(berth: Command): void {
  const keys = berth.command('keys').description('API keys in the file that BERTH_CONFIG names.');

  keys
    .command('add')
    .description('Makes a key, prints it once and stores its SHA-256.')
    .argument('<name>', 'what logs and the operator call it')
    .option('--member <member>', 'the member its jobs run for; default: the name')
    .option('--tier <tier>', 'tier of its jobs; default: free')
    .option('--default-priority <points>', 'points of a request that names no priority', points)
    .option('--max-priority <points>', 'ceiling in points, or none; default: 100', pointsOrNone)
    .option('--may-assert <headers>', 'member, tier or member,tier: what its headers may say', list)
    .option('--admin', 'opens the board and the admin routes')
    .action(async (name: string, options: AddOptions) => {
      const { keyEntry, newKey, withKey } = await import('./key-list.ts');
      const { editKeys } = await import('../config/edit-keys.ts');
      const file = await requiredFile();
      const key = newKey();
      const { maxPriority, ...others } = options;
      const ceiling = maxPriority === 'none' ? null : maxPriority;
      const settings = ceiling === undefined ? others : { ...others, maxPriority: ceiling };
      editKeys<KeyEntry>(file, (entries) => withKey(entries, keyEntry(name, key, settings)));
      say(`${name} is in ${file}; a running Berth takes it within 5 s. The key, shown this once:`);
      out(`${key}\n`);
    });

  keys
    .command('list')
    .description('Shows the keys, without anything secret.')
    .action(async () => {
      const { keyTable } = await import('./key-list.ts');
      const { readKeyEntries } = await import('../config/edit-keys.ts');
      out(keyTable(readKeyEntries<KeyEntry>(await requiredFile())));
    });

  keys
    .command('remove')
    .description('Takes a key away.')
    .argument('<name>', 'as `keys list` shows it')
    .action(async (name: string) => {
      const { withoutKey } = await import('./key-list.ts');
      const { editKeys } = await import('../config/edit-keys.ts');
      const file = await requiredFile();
      let leftCount = 0;
      editKeys<KeyEntry>(file, (entries) => {
        const left = withoutKey(entries, name);
        leftCount = left.length;
        return left;
      });
      say(`${name} is out of ${file}; a running Berth forgets it within 5 s.`);
      if (leftCount === 0)
        say('No key is left: Berth now serves its own machine alone, to anybody.');
    });

  berth
    .command('trace')
    .description('Writes the jobs that ran into a file for `npm run simulate -- --trace`.')
    .argument('<file>', 'JSON lines; an old one of that name is replaced')
    .action(async (file: string) => {
      const { loadConfig } = await import('../config/load.ts');
      const { recordTrace } = await import('./record-trace.ts');
      for (const line of await recordTrace(loadConfig(), file)) say(line);
    });

  berth
    .command('webhooks')
    .description('What receivers of webhooks need.')
    .command('secret')
    .description('Prints the secret that webhooks are signed with (Standard Webhooks).')
    .action(async () => {
      const { loadWebhookSecret } = await import('../adapters/storage/seal.ts');
      const { loadConfig } = await import('../config/load.ts');
      const { dataDir, sealingSecret } = loadConfig();
      out(`${await loadWebhookSecret(dataDir, sealingSecret ?? undefined)}\n`);
    });
}

function points(text: string): number {
  if (!/^[+-]?[0-9]{1,5}$/.test(text))
    throw new InvalidArgumentError('a whole number from -10000 to 10000 is needed.');
  return Number(text);
}

function pointsOrNone(text: string): number | 'none' {
  return text === 'none' ? text : points(text);
}

function list(text: string): KeyEntry['mayAssert'] {
  return text.split(',').map((word) => {
    const header = word.trim();
    if (header !== 'member' && header !== 'tier')
      throw new InvalidArgumentError('member, tier or member,tier is needed.');
    return header;
  });
}

async function requiredFile(): Promise<string> {
  const { configPath } = await import('../config/load.ts');
  const file = configPath();
  if (file !== null) return file;
  throw new CommandError(
    'BERTH_CONFIG is not set, so Berth reads no keys: choose a file and start Berth and this ' +
      'command with it, for example BERTH_CONFIG=berth.config.json',
  );
}
