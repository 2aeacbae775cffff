import { readFile } from 'node:fs/promises';
import type { BerthConfig } from '../config/load.ts';
import { configPath } from '../config/load.ts';
import { readKeys } from '../config/read-keys.ts';
import type { KeyRing } from '../ingress/key-ring.ts';
import type { Logger } from '../ports/logger.ts';

/** How often the file is looked at: a change counts within 5 s, a slow disk included. */
const LOOK_MS = 2000;

/**
 * Takes `keys` anew from the configuration file whenever its content changes, and nothing else of it. A file that is
 * gone or broken leaves the keys as they are and is logged once for each such content. Content is compared, not times:
 * a file put in the place of the old one and a clock that stepped back make no difference. Undefined without a file.
 */
export function watchKeys(
  config: BerthConfig,
  ring: KeyRing,
  log: Logger,
  lookMs = LOOK_MS,
): { stop: () => void } | undefined {
  const path = config.source.environment.BERTH_CONFIG === null ? null : configPath();
  if (path === null) return undefined;
  let keys = config.keys;
  /** The content looked at last, or why there was none. */
  let last = '';
  const look = async (): Promise<void> => {
    const text = await readFile(path, 'utf8').catch((error: unknown) => error);
    const seen = typeof text === 'string' ? text : String(text);
    if (seen === last) return;
    last = seen;
    const reading = typeof text === 'string' ? readKeys(path, text, config) : unreadable(text);
    if (reading.keys === null) {
      log.error({ faults: reading.faults, keptCount: keys.length }, 'keys.unreadable');
      return;
    }
    if (JSON.stringify(reading.keys) === JSON.stringify(keys)) return;
    keys = reading.keys;
    ring.replace(keys);
    log.info({ names: keys.map(({ name }) => name) }, 'keys.changed');
  };
  let looking = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    void look().finally(() => (looking = false));
  }, lookMs);
  return { stop: () => clearInterval(timer) };
}

function unreadable(error: unknown): { keys: null; faults: string[] } {
  return { keys: null, faults: [error instanceof Error ? error.message : String(error)] };
}
