import { createHash } from 'node:crypto';
import { createRequire } from 'node:module';

interface BullScript {
  name: string;
  content: string;
  keys: number;
}

/** The BullMQ scripts Berth wraps, with the SHA-256 of the texts it was written against (bullmq 6.7.0). */
const KNOWN = {
  addPrioritizedJob: {
    file: 'addPrioritizedJob-9',
    sha256: 'd4652d1be004a3d7bfed76efdc706f2017f8dfd0080c51ab1f05457eeb1c3c77',
  },
  moveToActive: {
    file: 'moveToActive-11',
    sha256: '7d35069db0b831af1bd1b2d5eb8d524e86fc7d3280b8c684a96b6614bad7d79a',
  },
  moveToFinished: {
    file: 'moveToFinished-14',
    sha256: '8e744ec5d65dbe9e7ffb6e39a96c0268bba65e4f0b1d04e2d2a42ccb71b45a6d',
  },
  moveToDelayed: {
    file: 'moveToDelayed-11',
    sha256: '1a7b9311ef92fd66416973c29fa8b2c909cec58d0bfcf3e5ab53bb07ea1664d7',
  },
} as const;

/** Names of the wrapped scripts. */
export type WrappedScript = keyof typeof KNOWN;

const require = createRequire(import.meta.url);

/**
 * BullMQ's own text of a script. Throws when it is not the text Berth's scripts were written around: an upgrade of
 * BullMQ has to be read and tested, not slipped in.
 */
export function bullScript(name: WrappedScript): BullScript {
  const { file, sha256 } = KNOWN[name];
  const found = (require(`bullmq/dist/cjs/scripts/${file}.js`) as Record<string, BullScript>)[name];
  if (found === undefined)
    throw new Error(`bullmq has no script ${name}: it is not the version Berth wraps`);
  const actual = createHash('sha256').update(found.content).digest('hex');
  if (actual !== sha256) {
    throw new Error(`bullmq's script ${name} is not the one Berth wraps (sha256 ${actual})`);
  }
  return found;
}

/** The script's text as a Lua function of (KEYS, ARGV), under another name. */
export function asLuaFunction(name: WrappedScript, luaName: string): string {
  return `local function ${luaName}(KEYS, ARGV)\n${bullScript(name).content}\nend\n`;
}
