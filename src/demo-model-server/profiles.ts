import type { Exchange } from './exchange.ts';
import { sendError } from './errors.ts';

/** A named set of model ids that stand for other models while it is active. */
export interface DemoProfile {
  readonly id: string;
  readonly description: string;
  /** Asked id to the model it stands for; null: asking for it is a 404. */
  readonly pins: Readonly<Record<string, string | null>>;
}

/** The profiles when none are named in the options. */
export const demoProfiles: readonly DemoProfile[] = [
  {
    id: 'quality',
    description: 'The large chat model answers for the demo',
    pins: { 'demo-any-chat': 'demo-chat-large' },
  },
];

/** Which profile is active, and what it replaces. */
export class Profiles {
  readonly #profiles: readonly DemoProfile[];
  readonly #onChange: () => void;
  #active: DemoProfile | undefined;

  /** `onChange` is called after each change of the active profile. */
  constructor(profiles: readonly DemoProfile[], onChange: () => void) {
    this.#profiles = profiles;
    this.#onChange = onChange;
  }

  /** Id of the active profile, or null. */
  get active(): string | null {
    return this.#active?.id ?? null;
  }

  /** What the active profile replaces. */
  get pins(): Readonly<Record<string, string | null>> {
    return this.#active?.pins ?? {};
  }

  /** The id asked for after the active profile's pins; empty when the id is switched off. */
  pinned(asked: string): string {
    return Object.hasOwn(this.pins, asked) ? (this.pins[asked] ?? '') : asked;
  }

  /** The same for a path `/<model>/<rest>`: the longest pin it begins with is replaced; undefined: switched off. */
  pinnedPath(path: string): string | undefined {
    const pin = Object.keys(this.pins)
      .filter((id) => path === `/${id}` || path.startsWith(`/${id}/`))
      .toSorted((a, b) => b.length - a.length)[0];
    if (pin === undefined) return path;
    const target = this.pinned(pin);
    return target === '' ? undefined : `/${target}${path.slice(pin.length + 1)}`;
  }

  /** The answer of `GET /api/profiles`. */
  listing(): object {
    return { active: this.active, profiles: this.#profiles };
  }

  /** `PUT /api/profiles/active` with `{"name": id or null}`. */
  async activate({ answer, body, headers }: Exchange): Promise<void> {
    let name: unknown;
    try {
      ({ name } = JSON.parse(body.toString()) as { name?: unknown });
    } catch {
      await sendError(answer, headers, 400, 'invalid profile request');
      return;
    }
    if (name !== null && typeof name !== 'string') {
      const message = name === undefined ? 'profile name is required' : 'profile name must be text';
      await sendError(answer, headers, 400, message);
      return;
    }
    const profile = this.#profiles.find(({ id }) => id === name);
    if (profile === undefined && name !== null && name !== '') {
      await sendError(answer, headers, 404, `unknown profile ${name}`);
      return;
    }
    this.#active = profile;
    this.#onChange();
    const said = JSON.stringify({ active: this.active });
    await answer.send(200, { 'Content-Type': 'application/json' }, `${said}\n`);
  }
}
