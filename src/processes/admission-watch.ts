import type { PoolStatus } from '../adapters/redis/pool-status.ts';
import type { RedisHealth } from '../adapters/redis/redis-health.ts';
import type { FileBodyStore } from '../adapters/storage/file-body-store.ts';
import type { RejectCode } from '../errors.ts';
import type { ReadyCheck } from '../ingress/api/ready-schema.ts';
import type { Telemetry } from '../ports/telemetry.ts';

const LOOK_MS = 500;
/** Digits of a policy's hash that are shown: enough to tell two apart, too few to look like a key's. */
const SHOWN_HASH = 12;

/** Free bytes of disk below which no job is taken: the append-only file and bodies need them. */
const DISK_LOW_WATER_BYTES = 128 * 1024 * 1024;
/** Scorer passes that may be missed before readyz says so, and the least time that is given. */
const SCORER_PATIENCE = 3;
const LEAST_PATIENCE_MS = 15_000;

/** What is looked at. */
export interface AdmissionWatchOptions {
  redis: { readonly status: string };
  /** Reads what Redis says of itself. */
  health: () => Promise<RedisHealth>;
  status: PoolStatus;
  store: FileBodyStore;
  telemetry: Telemetry;
  admitBelowFraction: number;
  scorerIntervalSeconds: number;
  /** Of this process' policy configuration. */
  policyHash: string;
}

interface Look {
  health: RedisHealth | undefined;
  freeBytes: number;
  owner: string | undefined;
  scorerAgeMs: number | undefined;
  isShared: boolean;
  /** Of the worker's policy configuration; undefined while it has said none. */
  policyHash: string | undefined;
}

/** Looks twice a second at what decides whether new jobs may be taken, and keeps the last look. */
export class AdmissionWatch {
  private readonly options: AdmissionWatchOptions;
  private timer: NodeJS.Timeout | undefined;
  private isStopping = false;
  private last: Look = {
    health: undefined,
    freeBytes: Infinity,
    owner: undefined,
    scorerAgeMs: undefined,
    isShared: false,
    policyHash: undefined,
  };

  constructor(options: AdmissionWatchOptions) {
    this.options = options;
  }

  /** Looks once, then again and again. */
  async start(): Promise<void> {
    await this.look();
    this.timer = setInterval(() => void this.look(), LOOK_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  /** From now on every new job is refused: the process is going. */
  close(): void {
    this.isStopping = true;
  }

  /** Why no job may be taken right now, if so. */
  refusal(): RejectCode | undefined {
    const { health, freeBytes } = this.last;
    if (this.isStopping) return 'shutting_down';
    if (this.options.redis.status !== 'ready') return 'redis_unavailable';
    if (
      health !== undefined &&
      health.maxBytes > 0 &&
      health.usedBytes >= health.maxBytes * this.options.admitBelowFraction
    ) {
      return 'memory_full';
    }
    return freeBytes < DISK_LOW_WATER_BYTES ? 'storage_full' : undefined;
  }

  /** Whether the worker was seen to share this ingress' body store. */
  mayStore(): boolean {
    return this.last.isShared;
  }

  /** The last look, for readyz. */
  checks(): ReadyCheck[] {
    const { health, owner, scorerAgeMs, isShared, freeBytes, policyHash } = this.last;
    const isConnected = this.options.redis.status === 'ready';
    const patience = Math.max(
      LEAST_PATIENCE_MS,
      this.options.scorerIntervalSeconds * 1000 * SCORER_PATIENCE,
    );
    const isScored = scorerAgeMs !== undefined && scorerAgeMs <= patience;
    return [
      { name: 'redis', ok: isConnected, detail: isConnected ? 'connected' : 'not connected' },
      {
        name: 'redis_aof',
        ok: health?.hasAof === true,
        detail:
          health?.hasAof === true
            ? 'appendonly is on'
            : 'appendonly is off: a crash of Redis loses jobs; set appendonly yes',
        isWarning: true,
      },
      {
        name: 'redis_eviction',
        ok: health?.mayEvict === false,
        detail:
          health?.mayEvict === true
            ? `maxmemory-policy is ${health.policy}: Redis may drop jobs; set maxmemory-policy noeviction`
            : 'Redis drops no keys',
      },
      {
        name: 'worker',
        ok: isConnected && owner !== undefined,
        detail: owner ?? 'no worker owns the GPU',
      },
      {
        name: 'scorer',
        ok: isConnected && isScored,
        detail:
          scorerAgeMs === undefined
            ? 'no pass yet'
            : `last pass ${Math.round(scorerAgeMs / 1000)} s ago`,
      },
      {
        name: 'body_store',
        ok: isShared,
        detail: isShared
          ? 'shared with the worker'
          : 'the worker does not see this DATA_DIR: bodies over 256 KiB are refused',
      },
      {
        name: 'policy',
        ok: policyHash === undefined || policyHash === this.options.policyHash,
        detail:
          policyHash === undefined || policyHash === this.options.policyHash
            ? 'the same as the worker’s'
            : 'the worker decides by another policy configuration: start both with the same one',
      },
      {
        name: 'disk',
        ok: freeBytes >= DISK_LOW_WATER_BYTES,
        detail: `${Math.floor(freeBytes / 1_048_576)} MiB free`,
      },
    ];
  }

  private comparePolicies(theirs: string | undefined): void {
    const { policyHash, telemetry } = this.options;
    const differs = theirs !== undefined && theirs !== policyHash;
    telemetry.policyCompared({
      differs,
      ours: policyHash.slice(0, SHOWN_HASH),
      workers: theirs?.slice(0, SHOWN_HASH) ?? null,
    });
  }

  private async look(): Promise<void> {
    const { status, store, telemetry } = this.options;
    try {
      const freeBytes = await store.freeBytes();
      const [health, owner, scorerAgeMs, expected, found, policyHash] = await Promise.all([
        this.options.health(),
        status.owner(),
        status.scorerAgeMs(),
        status.storeMarker(),
        store.readMarker(),
        status.policyHash(),
      ]);
      this.comparePolicies(policyHash);
      this.last = {
        health,
        freeBytes,
        owner: owner && `${owner.name}, pid ${owner.pid} on ${owner.host}`,
        scorerAgeMs,
        isShared: expected !== undefined && expected === found,
        policyHash,
      };
      telemetry.redisDurabilitySeen({ hasAof: health.hasAof, mayEvict: health.mayEvict });
      if (scorerAgeMs !== undefined) telemetry.scorerAged({ ageMs: scorerAgeMs });
    } catch {
      // Redis is away: what was seen last stands, and `refusal` looks at the connection itself.
    }
  }
}
