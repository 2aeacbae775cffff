import type { ModelCatalogue, ModelServer } from '../../ports/model-server.ts';

/** How old lists may be before a known id is looked up again, in ms. */
const FRESH_MS = 5_000;
/** How often an id that was not found may make the lists be read again, in ms. */
const RETRY_MS = 250;
const READ_MS = 2_000;

interface Lists {
  ids: Set<string>;
  readAt: number;
  /** Both lists were read, so an id that is missing is unknown. */
  isComplete: boolean;
}

/**
 * The ids a llama-swap answers to: those of `/v1/models`, and those of the modelStatus frame that `/api/events` opens
 * with, which also names unlisted models and aliases. An id is called unknown only when both were just read; a wrong
 * "unknown" would send a generation past the queue.
 */
export class HttpModelCatalogue implements ModelCatalogue {
  private readonly server: ModelServer;
  private readonly headers: readonly string[];
  private lists: Lists | undefined;
  private reading: Promise<Lists> | undefined;

  /** `headers`: credentials the model server wants, flat. */
  constructor(server: ModelServer, headers: readonly string[]) {
    this.server = server;
    this.headers = headers;
  }

  async lookUp(modelId: string): Promise<'known' | 'unknown' | 'unsure'> {
    const age = this.lists === undefined ? Infinity : performance.now() - this.lists.readAt;
    if (this.lists?.ids.has(modelId) === true) {
      if (age > FRESH_MS) void this.read();
      return 'known';
    }
    const lists = age < RETRY_MS && this.lists !== undefined ? this.lists : await this.read();
    if (lists.ids.has(modelId)) return 'known';
    return lists.isComplete ? 'unknown' : 'unsure';
  }

  /** Ids listed at the last look, for metric labels. */
  get modelIds(): string[] {
    return [...(this.lists?.ids ?? [])];
  }

  private async read(): Promise<Lists> {
    this.reading ??= this.readBoth().finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async readBoth(): Promise<Lists> {
    const [listed, status] = await Promise.all([
      this.listed().catch(() => undefined),
      this.statusIds().catch(() => undefined),
    ]);
    this.lists = {
      ids: new Set([...(listed ?? []), ...(status ?? [])]),
      readAt: performance.now(),
      isComplete: listed !== undefined && status !== undefined,
    };
    return this.lists;
  }

  private async listed(): Promise<string[]> {
    const { status, text } = await this.fetchText(
      '/v1/models',
      (soFar) => soFar.length > 16_000_000,
    );
    if (status !== 200) throw new Error(`/v1/models answered ${status}`);
    const { data } = JSON.parse(text) as { data: { id: string }[] };
    return data.map((model) => model.id);
  }

  private async statusIds(): Promise<string[]> {
    const frame = /data:\s*(\{"type":"modelStatus".*\})\s*\n/;
    const { text } = await this.fetchText('/api/events', (soFar) => frame.test(soFar));
    const found = frame.exec(text)?.[1];
    if (found === undefined) throw new Error('no model status');
    const models = JSON.parse((JSON.parse(found) as { data: string }).data) as {
      id: string;
      aliases?: string[] | null;
    }[];
    return models.flatMap((model) => [model.id, ...(model.aliases ?? [])]);
  }

  private async fetchText(
    target: string,
    isEnough: (soFar: string) => boolean,
  ): Promise<{ status: number; text: string }> {
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), READ_MS);
    try {
      const answer = await this.server.call(
        { method: 'GET', target, headers: this.headers, body: null },
        abort.signal,
      );
      const chunks: Buffer[] = [];
      for await (const piece of answer.body) {
        chunks.push(piece);
        if (isEnough(Buffer.concat(chunks).toString())) break;
      }
      return { status: answer.status, text: Buffer.concat(chunks).toString() };
    } finally {
      clearTimeout(timer);
      abort.abort();
    }
  }
}
