import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { asLuaFunction } from './bull-scripts.ts';
import type { WrappedScript } from './bull-scripts.ts';

interface Recipe {
  keys: number;
  /** BullMQ texts to wrap: BullMQ's name to our function's name. */
  wraps?: Partial<Record<WrappedScript, string>>;
  fragments?: readonly string[];
}

const QUEUE_FRAGMENTS = ['place', 'journal', 'connections', 'outbox', 'remove', 'rejoin'] as const;

const FILM_RECIPE = {
  keys: 1,
  wraps: { addPrioritizedJob: 'bull_add' },
  fragments: [...QUEUE_FRAGMENTS, 'enqueue', 'films'],
} as const;

const RECIPES = {
  submit: {
    keys: 9,
    wraps: { addPrioritizedJob: 'bull_add' },
    fragments: ['place', 'journal', 'connections', 'enqueue'],
  },
  claim: {
    keys: 11,
    wraps: { moveToActive: 'bull_activate' },
    fragments: [...QUEUE_FRAGMENTS, 'fetch'],
  },
  settle: {
    keys: 14,
    wraps: {
      addPrioritizedJob: 'bull_add',
      moveToActive: 'bull_activate',
      moveToFinished: 'bull_finish',
    },
    fragments: [...QUEUE_FRAGMENTS, 'run-standing', 'enqueue', 'films', 'fetch'],
  },
  postpone: {
    keys: 22,
    wraps: { moveToActive: 'bull_activate', moveToDelayed: 'bull_delay' },
    fragments: [...QUEUE_FRAGMENTS, 'run-standing', 'fetch'],
  },
  'hand-back': { keys: 1, fragments: [...QUEUE_FRAGMENTS, 'owns'] },
  append: { keys: 2 },
  'keep-work': { keys: 1, fragments: ['owns'] },
  watch: { keys: 1, fragments: [...QUEUE_FRAGMENTS, 'owns'] },
  abandon: { keys: 1, fragments: QUEUE_FRAGMENTS },
  cancel: { keys: 1, fragments: QUEUE_FRAGMENTS },
  detach: { keys: 1, fragments: ['place', 'connections'] },
  'read-jobs': { keys: 1, fragments: ['place'] },
  'sweep-deadlines': { keys: 1, fragments: QUEUE_FRAGMENTS },
  'sweep-abandoned': { keys: 1, fragments: QUEUE_FRAGMENTS },
  'sweep-retention': { keys: 1, fragments: QUEUE_FRAGMENTS },
  repair: { keys: 1, fragments: QUEUE_FRAGMENTS },
  reconcile: { keys: 1, fragments: QUEUE_FRAGMENTS },
  renumber: { keys: 1, fragments: ['place'] },
  show: { keys: 1 },
  own: { keys: 1 },
  'own-beat': { keys: 1 },
  revive: { keys: 1, fragments: QUEUE_FRAGMENTS },
  'record-duration': { keys: 3 },
  'film-create': FILM_RECIPE,
  'film-pause': FILM_RECIPE,
  'film-resume': FILM_RECIPE,
  'film-skip': FILM_RECIPE,
  'film-cancel': FILM_RECIPE,
  'film-repair': FILM_RECIPE,
} as const satisfies Record<string, Recipe>;

/** Names of Berth's own scripts. */
export type ScriptName = keyof typeof RECIPES;

/** What a script may be given. */
export type ScriptArgument = string | number | Buffer;

const luaText = (name: string): string =>
  readFileSync(new URL(`./lua/${name}.lua`, import.meta.url), 'utf8');

/** Fragments that call BullMQ's own texts. */
const AFTER_BULL = new Set(['fetch', 'films']);

function compose(name: ScriptName): { lua: string; numberOfKeys: number } {
  const recipe: Recipe = RECIPES[name];
  const fragments = (recipe.fragments ?? []).flatMap((part) =>
    part === 'fetch' ? ['owns', part] : [part],
  );
  const wrapped = Object.entries(recipe.wraps ?? {}).map(([script, luaName]) =>
    asLuaFunction(script as WrappedScript, luaName),
  );
  return {
    lua: [
      ...fragments.filter((part) => !AFTER_BULL.has(part)).map(luaText),
      ...wrapped,
      ...fragments.filter((part) => AFTER_BULL.has(part)).map(luaText),
      luaText(name),
    ].join('\n'),
    numberOfKeys: recipe.keys,
  };
}

const composed = new Map<ScriptName, { lua: string; numberOfKeys: number }>();

/** Runs Berth's scripts on one connection, registering each at its first use. */
export class Scripts {
  private readonly redis: Redis;
  private readonly registered = new Set<ScriptName>();

  constructor(redis: Redis) {
    this.redis = redis;
  }

  /** Keys first, then arguments. The reply's strings are UTF-8. */
  async run(name: ScriptName, ...args: ScriptArgument[]): Promise<unknown> {
    return this.command(name, '')(...args);
  }

  /** As `run`, with every string of the reply as a Buffer: for replies that carry bodies. */
  async runBinary(name: ScriptName, ...args: ScriptArgument[]): Promise<unknown> {
    return this.command(name, 'Buffer')(...args);
  }

  private command(
    name: ScriptName,
    suffix: '' | 'Buffer',
  ): (...args: ScriptArgument[]) => Promise<unknown> {
    const commandName = `berth:${name}`;
    if (!this.registered.has(name)) {
      const script = composed.get(name) ?? compose(name);
      composed.set(name, script);
      this.redis.defineCommand(commandName, script);
      this.registered.add(name);
    }
    // defineCommand adds methods ioredis' types cannot know.
    const client = this.redis as unknown as Record<
      string,
      (...args: ScriptArgument[]) => Promise<unknown>
    >;
    const method = client[`${commandName}${suffix}`];
    if (method === undefined) throw new Error(`script ${name} is not registered`);
    return method.bind(this.redis);
  }
}
