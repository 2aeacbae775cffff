import type {
  ModelCatalogue,
  ModelServer,
  ModelState,
  ModelStates,
} from '../../ports/model-server.ts';
import { ModelDirectory } from './model-directory.ts';
import type { ListedModel, ModelLists } from './model-directory.ts';
import { readModelStatus } from './model-status.ts';
import { readText } from './read-text.ts';

/** How old lists may be before a known id is looked up again, in ms. */
const FRESH_MS = 5_000;
/** How often an id that was not found may make the lists be read again, in ms. */
const RETRY_MS = 250;
/** How old a reading of `/running` may be, in ms: a model may be swapped out at any moment. */
const STATES_MS = 50;
const READ_MS = 2_000;

/**
 * The models of a llama-swap: those of `/v1/models`, those of the modelStatus frame that `/api/events` opens with (it
 * also names unlisted models and aliases), and the active profile of `/api/profiles`. Read when somebody asks, at most
 * every few seconds, never on a timer. A list that cannot be read stays as it was last; an id is called unknown only
 * when all were just read, because a wrong "unknown" would send a generation past the queue.
 */
export class HttpModelCatalogue implements ModelCatalogue, ModelStates {
  private readonly server: ModelServer;
  private readonly headers: readonly string[];
  private lists: ModelLists = { models: [], status: [], pins: {} };
  private directory = new ModelDirectory(this.lists);
  private readAt = -Infinity;
  /** All lists were read the last time, so an id that is missing is unknown. */
  private isComplete = false;
  private reading: Promise<void> | undefined;
  private states:
    { atMs: number; read: Promise<ReadonlyMap<string, ModelState> | undefined> } | undefined;

  /** `headers`: credentials the model server wants, flat. */
  constructor(server: ModelServer, headers: readonly string[]) {
    this.server = server;
    this.headers = headers;
  }

  async lookUp(modelId: string): Promise<'known' | 'unknown' | 'unsure'> {
    if (this.directory.has(modelId)) {
      this.refresh(FRESH_MS);
      return 'known';
    }
    if (performance.now() - this.readAt >= RETRY_MS) await this.read();
    if (this.directory.has(modelId)) return 'known';
    return this.isComplete ? 'unknown' : 'unsure';
  }

  resolve(modelId: string): string {
    this.refresh(this.directory.has(modelId) ? FRESH_MS : RETRY_MS);
    return this.directory.resolve(modelId);
  }

  isPeer(modelId: string): boolean {
    this.refresh(this.directory.has(modelId) ? FRESH_MS : RETRY_MS);
    return this.directory.isPeer(modelId);
  }

  async stateOf(modelId: string): Promise<ModelState> {
    const nowMs = performance.now();
    if (this.states === undefined || nowMs - this.states.atMs >= STATES_MS)
      this.states = { atMs: nowMs, read: this.running().catch(() => undefined) };
    const states = await this.states.read;
    if (states === undefined) return 'unknown';
    return states.get(this.directory.resolve(modelId)) ?? 'stopped';
  }

  /** Ids listed at the last look, for metric labels. */
  get modelIds(): string[] {
    return this.directory.ids;
  }

  /** Everything that is not stopped. */
  private async running(): Promise<Map<string, ModelState>> {
    const { running } = JSON.parse(await this.body('/running')) as {
      running: { model: string; state: ModelState }[];
    };
    return new Map(running.map(({ model, state }) => [model, state]));
  }

  /** Reads the lists in the background when they are older than `ms`. */
  private refresh(ms: number): void {
    if (performance.now() - this.readAt >= ms) void this.read();
  }

  private async read(): Promise<void> {
    this.reading ??= this.readAll().finally(() => (this.reading = undefined));
    return this.reading;
  }

  private async readAll(): Promise<void> {
    const [models, status, pins] = await Promise.all([
      this.listed().catch(() => undefined),
      this.status().catch(() => undefined),
      this.activePins().catch(() => undefined),
    ]);
    this.lists = {
      models: models ?? this.lists.models,
      status: status ?? this.lists.status,
      pins: pins ?? this.lists.pins,
    };
    this.directory = new ModelDirectory(this.lists);
    this.isComplete = models !== undefined && status !== undefined && pins !== undefined;
    this.readAt = performance.now();
  }

  private async listed(): Promise<ListedModel[]> {
    const { data } = JSON.parse(await this.body('/v1/models')) as { data: ListedModel[] };
    if (!data.every(({ id }) => typeof id === 'string')) throw new Error('/v1/models has no ids');
    return data;
  }

  private async status(): Promise<ModelLists['status']> {
    const { text } = await readText(this.server, '/api/events', {
      headers: this.headers,
      timeoutMs: READ_MS,
      isEnough: (soFar) => readModelStatus(soFar) !== undefined,
    });
    const rows = readModelStatus(text);
    if (rows === undefined) throw new Error('no model status');
    return rows;
  }

  /** Versions without profiles answer 404: nothing is pinned there. */
  private async activePins(): Promise<ModelLists['pins']> {
    const { status, text } = await this.get('/api/profiles');
    if (status === 404) return {};
    if (status !== 200) throw new Error(`/api/profiles answered ${status}`);
    const { active, profiles } = JSON.parse(text) as {
      active: string | null;
      profiles: { id: string; pins: Record<string, string | null> | null }[];
    };
    return profiles.find(({ id }) => id === active)?.pins ?? {};
  }

  private async body(target: string): Promise<string> {
    const { status, text } = await this.get(target);
    if (status !== 200) throw new Error(`${target} answered ${status}`);
    return text;
  }

  private async get(target: string): Promise<{ status: number; text: string }> {
    return readText(this.server, target, { headers: this.headers, timeoutMs: READ_MS });
  }
}
