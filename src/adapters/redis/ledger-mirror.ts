import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { Ledger } from '../../policy/ledger.ts';
import { applyEvent } from '../../policy/ledger-event.ts';
import type { LedgerEvent } from '../../policy/ledger-event.ts';
import type { Rules } from '../../policy/rules.ts';
import { JOURNAL_START, journalToken, readJournalEntry } from './journal-entry.ts';
import type { JournalPlace, RawJournalEntry } from './journal-entry.ts';
import type { PoolKeys } from './keys.ts';
import { loadLedger } from './ledger-loader.ts';
import { writeSnapshot } from './ledger-snapshot.ts';

const BLOCK_MS = 1000;
/** Time until the journal is read again after a failure or an entry that does not follow, in ms. */
const RETRY_MS = 100;
/** Entries read at once while following. */
const READ_COUNT = 500;
/** A blocking read that is silent for longer hangs on a dead connection. */
const HUNG_AFTER_MS = 4000;
/** Entries kept behind the last snapshot for those who follow. */
const KEEP_ENTRIES = 10_000;

/** What a mirror works with. */
export interface LedgerMirrorOptions {
  /** Any connection but a blocking one. */
  redis: Redis;
  /** A `blocking` connection of the mirror's own, to follow the journal. */
  blocking: Redis;
  keys: PoolKeys;
  rules: Rules;
  /** Awaited before entries that were followed are applied, unless there are very many. */
  pause?: () => Promise<void>;
  /** Called before each event that is new is applied. */
  onEvent?: (event: LedgerEvent, ledger: Ledger) => void;
  /** Called when new events have been applied. */
  onChange?: () => void;
  /** The books were lost and started over. */
  onRebuilt?: (waiting: number) => void;
  onError: (error: Error) => void;
}

/**
 * Policy's ledger in this process: loaded once, then kept by following the journal of the queue.
 *
 *     load -> following -> (gap, or another epoch) -> load
 *
 * Entries may come twice, from the follower and from the reply of a script; each counts once.
 */
export class LedgerMirror {
  private readonly options: LedgerMirrorOptions;
  private current: Ledger;
  private place: JournalPlace = JOURNAL_START;
  private loading: Promise<void> | undefined;
  private isLost = false;
  private stopped = false;
  private loop: Promise<void> | undefined;

  constructor(options: LedgerMirrorOptions) {
    this.options = options;
    this.current = new Ledger(options.rules);
  }

  /** The ledger as far as the journal is known here. Others must not change it. */
  get ledger(): Ledger {
    return this.current;
  }

  /** The place in the journal it stands for, in the scripts' form. */
  get token(): string {
    return journalToken(this.place);
  }

  /** Loads the ledger and follows the journal from there. */
  async start(): Promise<void> {
    await this.load();
    this.loop = this.follow();
  }

  /** Ends following. The blocking connection is closed, the other stays the caller's. */
  async stop(): Promise<void> {
    this.stopped = true;
    this.options.blocking.disconnect();
    await this.loop;
  }

  /**
   * Takes entries that follow one another; those known already are skipped. False when some in between are
   * missing: the ledger has to be loaded again.
   */
  take(entries: readonly RawJournalEntry[]): boolean {
    let isNews = false;
    for (const raw of entries) {
      const entry = readJournalEntry(raw, this.options.rules);
      if (entry === undefined) return this.lose();
      if (entry.epoch !== this.place.epoch && this.place.version > 0) return this.lose();
      if (entry.version <= this.place.version) continue;
      if (entry.version !== this.place.version + 1) return this.lose();
      this.options.onEvent?.(entry.event, this.current);
      applyEvent(this.current, entry.event);
      this.place = { version: entry.version, epoch: entry.epoch };
      isNews = true;
    }
    if (isNews) this.options.onChange?.();
    return true;
  }

  /** Loads the ledger again if it is known to be behind beyond repair. */
  async recover(): Promise<void> {
    if (this.isLost || this.loading !== undefined) await this.load();
  }

  /** Compares with where the journal is, and loads again if this ledger cannot get there by following. */
  async check(): Promise<void> {
    const [version, epoch] = await this.options.redis.hmget(
      this.options.keys.journalHead,
      'v',
      'e',
    );
    const isSame = (epoch ?? '0') === this.place.epoch || this.place.version === 0;
    if (!isSame || Number(version ?? 0) < this.place.version) this.lose();
    await this.recover();
  }

  /** Says that the ledger cannot be followed any further from here. */
  lose(): false {
    this.isLost = true;
    return false;
  }

  /** Keeps the books in Redis, so that the next to start goes on from here; the worker's business alone. */
  async save(): Promise<void> {
    const { redis, keys } = this.options;
    if (this.isLost) return;
    const { version } = this.place;
    await redis.set(`${keys.pool}:ledger`, writeSnapshot(this.place, this.current.state()));
    if (version > KEEP_ENTRIES) {
      await redis.xtrim(keys.journal, 'MINID', '~', `${version - KEEP_ENTRIES}-0`);
    }
  }

  private async load(): Promise<void> {
    const { redis, keys, rules, onRebuilt, onChange } = this.options;
    this.loading ??= (async () => {
      try {
        const loaded = await loadLedger(redis, keys, rules);
        this.current = loaded.ledger;
        this.place = loaded.place;
        this.isLost = false;
        if (loaded.isRebuilt) onRebuilt?.(loaded.ledger.jobs.size);
        onChange?.();
      } finally {
        this.loading = undefined;
      }
    })();
    await this.loading;
  }

  private async follow(): Promise<void> {
    while (!this.isStopped()) {
      try {
        await this.recover();
        const entries = await this.readOnce();
        if (entries.length > 0 && entries.length < READ_COUNT) await this.options.pause?.();
        if (!this.take(entries)) await sleep(RETRY_MS);
      } catch (error) {
        if (this.isStopped()) return;
        this.options.onError(error instanceof Error ? error : new Error(String(error)));
        await sleep(RETRY_MS);
      }
    }
  }

  private isStopped(): boolean {
    return this.stopped;
  }

  private async readOnce(): Promise<RawJournalEntry[]> {
    const { blocking, keys } = this.options;
    const hung = setTimeout(() => blocking.disconnect(true), HUNG_AFTER_MS);
    try {
      const from = this.place.version === 0 ? '0-0' : this.token;
      const reply = await blocking.xread(
        'COUNT',
        READ_COUNT,
        'BLOCK',
        BLOCK_MS,
        'STREAMS',
        keys.journal,
        from,
      );
      return reply?.[0]?.[1] ?? [];
    } finally {
      clearTimeout(hung);
    }
  }
}
