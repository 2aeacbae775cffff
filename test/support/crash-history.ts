import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What a crash test kills. */
export type Victim = 'ingress' | 'gpu' | 'scorer' | 'redis';

/** Something that was seen from outside. A repeat of a submission is a `submit` of its own. */
export type CrashFact =
  /** The request for the job of this key leaves its client. */
  | { readonly kind: 'submit'; readonly key: string }
  /** 202 with the id of its job. */
  | { readonly kind: 'accepted'; readonly key: string; readonly jobId: string }
  /** Any other status. */
  | { readonly kind: 'refused'; readonly key: string; readonly status: number }
  /** The connection broke, or was never made: nobody knows what became of it. */
  | { readonly kind: 'cut'; readonly key: string }
  /** The job was read: its state, 'absent' when there is no such job. */
  | {
      readonly kind: 'read';
      readonly jobId: string;
      readonly state: string;
      readonly code: string | null;
    }
  /** Its answer was read whole. */
  | {
      readonly kind: 'result';
      readonly jobId: string;
      readonly status: number;
      readonly sha256: string;
    }
  /** The model server has the job's request, which names the key it was submitted with. */
  | {
      readonly kind: 'generation-start';
      readonly generation: number;
      readonly jobId: string;
      readonly key: string;
    }
  /** All of its bytes are on their way (their hash), or its connection died (null). */
  | {
      readonly kind: 'generation-end';
      readonly generation: number;
      readonly sha256: string | null;
    }
  | { readonly kind: 'kill'; readonly victim: Victim }
  /** Started again. */
  | { readonly kind: 'start'; readonly victim: Victim }
  /** Ended although nobody had killed it. */
  | { readonly kind: 'ended-by-itself'; readonly victim: Victim };

/** A fact and when it was seen, in ms of the recorder's monotonic clock. */
export type CrashEvent = CrashFact & { readonly atMs: number };

/**
 * What clients, model server and killer saw, in one order: all of them live in the recorder's process. A request is
 * recorded before it is sent and an answer after it came, so an answer that stands before something had truly been
 * given by then.
 */
export class CrashHistory {
  readonly events: CrashEvent[] = [];
  /** Whole generations so far. */
  answers = 0;

  record(fact: CrashFact): void {
    if (fact.kind === 'generation-end' && fact.sha256 !== null) this.answers += 1;
    this.events.push({ ...fact, atMs: performance.now() });
  }

  /** Writes it to a file below the temp dir, one event a line; resolves to the file's name. */
  async write(name: string): Promise<string> {
    const file = path.join(tmpdir(), `${name}.jsonl`);
    await writeFile(file, this.events.map((event) => `${JSON.stringify(event)}\n`).join(''));
    return file;
  }
}
