import { readFile } from 'node:fs/promises';
import { readKeys } from '../config/read-keys.ts';
import type { KeyReading } from '../config/read-keys.ts';
import type { AccessKey, KeyRing } from '../ingress/key-ring.ts';
import type { Logger } from '../ports/logger.ts';

/** How often the file is looked at, in ms: a change counts within 5 s, a slow disk included. */
const LOOK_MS = 2000;

/** What is watched, and who hears of it. */
export interface KeyWatchOptions {
  /** The configuration file. */
  readonly path: string;
  /** The keys that `ring` holds at the start. */
  readonly keys: readonly AccessKey[];
  readonly ring: KeyRing;
  readonly log: Logger;
  /** Milliseconds between two looks; default 2000. */
  readonly lookMs?: number;
}

/** Looks at the file again and again, until it is ended. */
export interface KeyWatch {
  /** Looks at it now; resolves when what was found counts. */
  look(): Promise<void>;
  end(): void;
}

/**
 * Takes `keys` anew from the configuration file whenever its content changes, and nothing else of it. A file that is
 * gone or broken leaves the keys as they are and is logged once for each such content, when two looks found it the same:
 * until then it may be half-written. One without keys takes away all
 * of them, and Berth serves its own machine alone. Content is compared, not times: a file put in the place of the old
 * one and a clock that stepped back make no difference. */
export function watchKeys(options: KeyWatchOptions): KeyWatch {
  const { path, ring, log, lookMs = LOOK_MS } = options;
  let { keys } = options;
  /** The content looked at last, or why there was none. */
  let last = '';
  /** Content that was faulty when it was seen first. */
  let doubted: string | undefined;

  const look = async (): Promise<void> => {
    const text = await readFile(path, 'utf8').catch(asError);
    const seen = String(text);
    if (seen === last) return;
    const reading: KeyReading =
      typeof text === 'string' ? readKeys(path, text) : { keys: null, faults: [text.message] };
    if (reading.keys === null && seen !== doubted) {
      doubted = seen;
      return;
    }
    last = seen;
    doubted = undefined;
    if (reading.keys === null) {
      log.error({ faults: reading.faults, keptCount: keys.length }, 'keys.unreadable');
      return;
    }
    if (JSON.stringify(reading.keys) === JSON.stringify(keys)) return;
    ({ keys } = reading);
    ring.replace(keys);
    log[keys.length === 0 ? 'warn' : 'info'](
      { names: keys.map(({ name }) => name) },
      'keys.changed',
    );
  };
  // One look after the other: what was read first must not count last.
  let looking = Promise.resolve();
  let pending = 0;
  const lookInTurn = async (): Promise<void> => {
    pending += 1;
    looking = looking.then(look).finally(() => (pending -= 1));
    return looking;
  };
  const timer = setInterval(() => {
    if (pending === 0) void lookInTurn();
  }, lookMs);
  return { look: lookInTurn, end: () => clearInterval(timer) };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
