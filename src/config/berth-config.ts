import { resolve } from 'node:path';
import type { AttemptRules } from '../policy/attempt.ts';
import type { Rules } from '../policy/rules.ts';
import type { ConfigurationDocument } from './document-schema.ts';
import type { Environment } from './environment-schema.ts';
import { keyRule, type KeyRule } from './key-schema.ts';

/** A value that nobody can change, all the way down. */
export type DeepReadonly<T> = T extends (infer Item)[]
  ? readonly DeepReadonly<Item>[]
  : T extends object
    ? { readonly [Key in keyof T]: DeepReadonly<T[Key]> }
    : T;

type Section<Name extends keyof ConfigurationDocument> = DeepReadonly<ConfigurationDocument[Name]>;

/**
 * Everything that is configured, deep-frozen, in slices to be handed down one by one. Units stand in the
 * names; null: unset. Never log it whole: `describeConfig` gives what may be printed.
 */
export interface BerthConfig {
  /** Part of every Redis key. */
  readonly pool: string;
  readonly http: {
    readonly host: string;
    /** 0: a free one. */
    readonly port: number;
    readonly trustProxyHops: number;
    /** Serves other machines without keys. */
    readonly isOpenAllowed: boolean;
  };
  readonly modelServer: {
    /** Origin and path prefix, without a slash at its end; null: the demo model server. */
    readonly url: string | null;
    readonly apiKey: string | null;
  };
  readonly redis: {
    /** redis://, rediss:// or unix:///path; null: the embedded one. May hold a password. */
    readonly url: string | null;
    readonly fsync: 'always' | 'everysec';
  };
  /** Absolute. */
  readonly dataDir: string;
  /** Seals forwarded credentials; null: a key file in `dataDir`. */
  readonly sealingSecret: string | null;
  readonly scorer: { readonly intervalSeconds: number; readonly port: number | null };
  readonly worker: Section<'worker'> & { readonly port: number | null };
  readonly shutdown: { readonly graceSeconds: number };
  readonly webhooks: { readonly mayCallPrivate: boolean };
  readonly tracing: { readonly otlpEndpoint: string | null };
  readonly log: { readonly level: Environment['LOG_LEVEL'] };
  /** All that the policy decides by. */
  readonly rules: Rules;
  readonly bypass: Section<'bypass'>;
  readonly asyncUpstreams: Section<'asyncUpstreams'>;
  readonly attempts: AttemptRules;
  readonly leases: Section<'leases'>;
  readonly durations: Section<'durations'>;
  readonly caps: Section<'caps'>;
  readonly idempotency: Section<'idempotency'>;
  readonly keepAlive: Section<'keepAlive'>;
  readonly retention: Section<'retention'>;
  readonly memory: Section<'memory'>;
  /** Empty: loopback only, unless open is allowed. */
  readonly keys: readonly KeyRule[];
  /** What the slices were made of. */
  readonly source: {
    readonly environment: Readonly<Environment>;
    readonly document: DeepReadonly<ConfigurationDocument>;
  };
}

/** Cuts a checked environment and document into slices; the result is frozen. */
export function composeConfig(
  environment: Environment,
  document: ConfigurationDocument,
): BerthConfig {
  const { bands, tiers, affinity, aging, intents, xPriorityUnit, modelFloors } = document;
  const {
    bypass,
    asyncUpstreams,
    attempts,
    leases,
    durations,
    caps,
    idempotency,
    keepAlive,
    retention,
    memory,
  } = document;
  return deepFreeze({
    pool: environment.POOL,
    http: {
      host: environment.HOST,
      port: environment.PORT,
      trustProxyHops: environment.TRUST_PROXY,
      isOpenAllowed: environment.BERTH_ALLOW_OPEN,
    },
    modelServer: {
      url: environment.MODEL_SERVER_URL && withoutEndSlash(environment.MODEL_SERVER_URL),
      apiKey: environment.MODEL_SERVER_API_KEY,
    },
    redis: { url: environment.REDIS_URL, fsync: environment.REDIS_FSYNC },
    dataDir: resolve(environment.DATA_DIR),
    sealingSecret: environment.BERTH_SECRET,
    scorer: {
      intervalSeconds: environment.SCORER_INTERVAL_SECONDS,
      port: environment.SCORER_PORT,
    },
    worker: { ...document.worker, port: environment.WORKER_PORT },
    shutdown: { graceSeconds: environment.SHUTDOWN_GRACE_SECONDS },
    webhooks: { mayCallPrivate: environment.WEBHOOK_ALLOW_PRIVATE },
    tracing: { otlpEndpoint: environment.OTEL_EXPORTER_OTLP_ENDPOINT },
    log: { level: environment.LOG_LEVEL },
    rules: { bands, tiers, affinity, aging, intents, xPriorityUnit, modelFloors },
    bypass,
    asyncUpstreams,
    attempts: {
      maxAttempts: attempts.most,
      firstBackoffMs: attempts.firstBackoffSeconds * 1000,
      maxBackoffMs: attempts.longestBackoffSeconds * 1000,
    },
    leases,
    durations,
    caps,
    idempotency,
    keepAlive,
    retention,
    memory,
    keys: document.keys.map(keyRule),
    source: { environment, document },
  });
}

function withoutEndSlash(address: string): string {
  return new URL(address).href.replace(/\/+$/, '');
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  Object.values(value).forEach(deepFreeze);
  return value;
}
