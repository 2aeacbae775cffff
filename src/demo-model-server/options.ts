import { demoModels, demoPeers, type DemoModel, type DemoPeer } from './catalogue.ts';
import type { DemoFault } from './fault.ts';
import { demoProfiles, type DemoProfile } from './profiles.ts';
import type { RequestRecord } from './request-record.ts';

/** How the demo model server behaves. */
export interface DemoModelServerOptions {
  /** Default: `demoModels`. */
  readonly models?: readonly DemoModel[];
  /** Default: `demoPeers`. */
  readonly peers?: readonly DemoPeer[];
  /** Default: `demoProfiles`; none is active at the start. */
  readonly profiles?: readonly DemoProfile[];
  /** Requests one model may have waiting and running; one more is refused with 429. Default 10, as llama-swap. */
  readonly concurrencyLimit?: number;
  /** Milliseconds to load a model that is not resident; default 1000. */
  readonly coldLoadMs?: number;
  /** Tokens a second of text, above 0, Infinity for no pause; default 50. */
  readonly tokensPerSecond?: number;
  /** Milliseconds for one picture; default 3000. */
  readonly imageMs?: number;
  /** Milliseconds for one video; default 20 000. */
  readonly videoMs?: number;
  /** Divides every time above and every `demo_ms` of a request; above 0, default 1. */
  readonly speed?: number;
  /** Keys of which a request must show one (Bearer, Basic password or x-api-key); empty, the default: open. */
  readonly apiKeys?: readonly string[];
  /** How many of the newest requests `record` keeps; default 20 000. */
  readonly keepRecords?: number;
  /** Whether the records keep the requests' bodies; default false. */
  readonly keepBodies?: boolean;
  /** Asked once for each request, when its body has been read, for something to go wrong with it. */
  readonly intercept?: (request: RequestRecord, body: Buffer) => DemoFault | undefined;
  /** Called with each request when it has ended. */
  readonly onRequestEnd?: (request: RequestRecord) => void;
}

/** The options with every default filled in. */
export type DemoSettings = Required<DemoModelServerOptions>;

/** Fills in the defaults; throws RangeError when a number is out of its range. */
export function settingsOf(options: DemoModelServerOptions): DemoSettings {
  const settings: DemoSettings = {
    models: demoModels,
    peers: demoPeers,
    profiles: demoProfiles,
    concurrencyLimit: 10,
    coldLoadMs: 1000,
    tokensPerSecond: 50,
    imageMs: 3000,
    videoMs: 20_000,
    speed: 1,
    apiKeys: [],
    keepRecords: 20_000,
    keepBodies: false,
    intercept: () => undefined,
    onRequestEnd: () => undefined,
    ...options,
  };
  const { coldLoadMs, imageMs, videoMs, tokensPerSecond, speed } = settings;
  for (const [name, ms] of Object.entries({ coldLoadMs, imageMs, videoMs })) {
    if (!(ms >= 0)) throw new RangeError(`${name} must be 0 or more, not ${ms}`);
  }
  const { concurrencyLimit } = settings;
  if (!(concurrencyLimit >= 1))
    throw new RangeError(`concurrencyLimit must be 1 or more, not ${concurrencyLimit}`);
  for (const [name, rate] of Object.entries({ tokensPerSecond, speed })) {
    if (!(rate > 0)) throw new RangeError(`${name} must be above 0, not ${rate}`);
  }
  return settings;
}
