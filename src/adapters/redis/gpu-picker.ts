import { decideAsItStands } from '../../policy/decide.ts';
import type { Decision } from '../../policy/decide.ts';
import type { WaitingJob } from '../../policy/job.ts';
import type { HandOver } from './hand-over.ts';
import type { LedgerMirror } from './ledger-mirror.ts';
import type { RawJournalEntry } from './journal-entry.ts';

/** What a fetch tells its script about the pick; see lua/fetch.lua. */
export interface Nomination {
  /** The place in the journal that the pick was made at. */
  journal: string;
  /** The job to run; empty: none, the GPU stays free until `untilMs` (0: until something happens). */
  nominee: string;
  /** JSON of the members passed over. */
  passedOver: string;
  untilMs: number;
  /** How many jobs wait and may run, and how many are in backoff, as far as is known here. */
  waiting: number;
  inBackoff: number;
  /** Take the nominee even if something happened since. */
  force: boolean;
}

/** What the picker works with. */
export interface GpuPickerOptions {
  mirror: LedgerMirror;
  handOver: HandOver;
  /** The model in GPU memory; null when it is not known. */
  residentModel: () => string | null;
  /** Redis TIME as well as it is known here, in ms; Infinity when it is not: then nothing is held. */
  nowMs: () => number;
  /** Jobs stand elsewhere than the journal has them: to be told to the journal. */
  reconcile: () => Promise<void>;
}

/** Decides what the worker runs next, by the policy and the mirror of the queue, and hears what came of it. */
export class GpuPicker {
  private readonly options: GpuPickerOptions;

  constructor(options: GpuPickerOptions) {
    this.options = options;
  }

  /** The pick as things stand. */
  nominate(force = false): Nomination {
    this.options.handOver.flush();
    return this.nomination(this.decision(this.options.nowMs()), force);
  }

  /** The pick for when the run has ended, and `next` has arrived in the same step. `endedMs` is Redis TIME. */
  nominateAfter(endedMs: number, usedMs: number, next?: WaitingJob): Nomination {
    this.options.handOver.begin();
    const { ledger } = this.options.mirror;
    const nominate = () => this.nomination(this.decision(endedMs), false);
    return ledger.asIfEnded(endedMs, usedMs, nominate, next);
  }

  /** What a script replied. After a fetch that gave a job out it is read when that job is on its way. */
  heard(entries: readonly RawJournalEntry[] | undefined, isHandedOut: boolean): void {
    const { mirror, handOver } = this.options;
    if (entries === undefined) mirror.lose();
    else handOver.after(() => void mirror.take(entries));
    if (isHandedOut) handOver.handedOut();
    else handOver.flush();
  }

  /** Gets the ledger right again after a reply that said it is not. */
  async recover(isDrift: boolean): Promise<void> {
    await this.options.mirror.recover();
    if (isDrift) await this.options.reconcile();
  }

  private decision(nowMs: number): Decision {
    return decideAsItStands(this.options.mirror.ledger, this.options.residentModel(), nowMs);
  }

  private nomination(decision: Decision, force: boolean): Nomination {
    const { mirror } = this.options;
    const { ledger } = mirror;
    const { inBackoff } = ledger;
    return {
      journal: mirror.token,
      nominee: decision.kind === 'run' ? decision.pick.job.id : '',
      passedOver: decision.kind === 'run' ? JSON.stringify(decision.pick.passedOver) : '[]',
      untilMs: decision.kind === 'run' ? 0 : (decision.untilMs ?? 0),
      waiting: ledger.jobs.size - inBackoff,
      inBackoff,
      force,
    };
  }
}
