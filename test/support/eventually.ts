import { setTimeout as sleep } from 'node:timers/promises';
import { inspect } from 'node:util';

/** How long and for what `eventually` waits. */
export interface EventuallyOptions {
  /** What is awaited, as it should read in the failure: "waited 5000 ms for <what>". */
  readonly what: string;
  /** Milliseconds until it gives up; 5000 by default. */
  readonly timeoutMs?: number;
  /** Milliseconds between two looks; 10 by default. */
  readonly everyMs?: number;
}

/** Refuses a look that may find nothing by saying undefined: a block of assertions says that when it succeeds. */
type NothingIsNull<T> = undefined extends T
  ? [Extract<void, T>] extends [never]
    ? { readonly returnNullInsteadOfUndefined: never }
    : unknown
  : unknown;

/**
 * Looks again and again until `look` neither throws nor returns a falsy value, and returns that value.
 * A block of assertions returns nothing and has succeeded when it does not throw; a look-up that may
 * find nothing says so with null or false (`list.find(…) ?? null`), which the types insist on.
 */
export async function eventually<T>(
  look: () => T,
  options: EventuallyOptions & NothingIsNull<Awaited<T>>,
): Promise<Exclude<Awaited<T>, null | undefined | false | 0 | ''>> {
  const timeoutMs = options.timeoutMs ?? 5000;
  const deadline = performance.now() + timeoutMs;
  let last: unknown;
  for (;;) {
    try {
      const seen = await look();
      if (seen === undefined || Boolean(seen)) {
        return seen as Exclude<Awaited<T>, null | undefined | false | 0 | ''>;
      }
      last = `the last look returned ${inspect(seen)}`;
    } catch (error) {
      last = error;
    }
    if (performance.now() >= deadline) {
      const why = last instanceof Error ? last.message : String(last);
      throw new Error(`waited ${timeoutMs} ms for ${options.what}: ${why}`, { cause: last });
    }
    await sleep(options.everyMs ?? 10);
  }
}
