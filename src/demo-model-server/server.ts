import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createHash } from 'node:crypto';
import { accessLine } from './access-line.ts';
import { Activity } from './activity.ts';
import { Admission } from './admission.ts';
import { Answer, AnswerOverError } from './answer.ts';
import { isAuthorized } from './auth.ts';
import { Captures } from './captures.ts';
import { Catalogue, needsGpu } from './catalogue.ts';
import { sendError, sendTooMany } from './errors.ts';
import { EventFeed } from './events.ts';
import { splitTarget, type Exchange } from './exchange.ts';
import { performFault, strikesBeforeLoad, type DemoFault } from './fault.ts';
import type { TokensUsed, WorkTimes } from './generation.ts';
import { Inflight, inflightEntry } from './inflight.ts';
import { modelStatus } from './listings.ts';
import { LogBook } from './log-book.ts';
import { Machine } from './machine.ts';
import { Meter } from './meter.ts';
import { Profiles } from './profiles.ts';
import { settingsOf, type DemoModelServerOptions, type DemoSettings } from './options.ts';
import { RequestLog, type RequestInProgress, type RequestRecord } from './request-record.ts';
import { Residency } from './residency.ts';
import { Router, type Route } from './routing.ts';
import { responseOn, Sockets } from './sockets.ts';

/**
 * A stand-in for llama-swap: several pretended models, one resident at a time, answers that depend on the request
 * alone. Generations of one resident model are not serialised, as in llama-swap; that they overlap is recorded.
 */
export interface DemoModelServer {
  /** Starts listening; port 0 picks a free one. Resolves with the port, rejects when it is taken. */
  listen(port: number, host: string): Promise<number>;
  /** Stops listening and cuts every connection; the models stay as they are, and it may listen again. */
  close(): Promise<void>;
  /** `http://host:port` of the last `listen`. */
  readonly url: string;
  /** The newest requests, oldest first. */
  readonly record: readonly RequestRecord[];
  /** Requests that held the GPU at the same time as another one. */
  readonly overlaps: number;
  /** The most requests that ever held the GPU at once. */
  readonly maxConcurrent: number;
  /** The model that is ready, or null. */
  readonly residentModel: string | null;
  /** Loads begun. */
  readonly loads: number;
  /** Loads that pushed another model out. */
  readonly swaps: number;
}

/** Makes a server that does not listen yet. Throws RangeError for an option out of its range. */
export function createDemoModelServer(options: DemoModelServerOptions = {}): DemoModelServer {
  return new HttpDemoModelServer(settingsOf(options));
}

/** One request's work on a model. */
interface Work {
  readonly route: Extract<Route, { needsModel: true }>;
  readonly used: TokensUsed;
  /** For its model. */
  isWaiting: boolean;
}

class HttpDemoModelServer implements DemoModelServer {
  readonly #settings: DemoSettings;
  readonly #times: WorkTimes;
  readonly #log: RequestLog;
  readonly #residency: Residency;
  readonly #admission: Admission;
  readonly #events: EventFeed;
  readonly #inflight: Inflight;
  readonly #logBook = new LogBook();
  readonly #meter: Meter;
  readonly #router: Router;
  readonly #sockets: Sockets;
  #server: Server | undefined;
  #url = '';

  constructor(settings: DemoSettings) {
    const { speed } = settings;
    this.#settings = settings;
    this.#times = {
      tokenMs: 1000 / settings.tokensPerSecond / speed,
      imageMs: settings.imageMs / speed,
      videoMs: settings.videoMs / speed,
      speed,
    };
    const catalogue = new Catalogue(settings.models, settings.peers);
    this.#admission = new Admission(settings.concurrencyLimit);
    this.#log = new RequestLog(settings.keepRecords, settings.onRequestEnd);
    const residency = new Residency(settings.coldLoadMs / speed, (modelId, state) => {
      this.#logBook.write({ kind: 'upstream', modelId }, `[${modelId}] ${state}`);
      this.#router.modelsChanged();
      this.#events.modelsChanged();
    });
    this.#residency = residency;
    const profiles = new Profiles(settings.profiles, () => this.#events.profileChanged());
    this.#inflight = new Inflight((change) => this.#events.inflightChanged(change));
    this.#events = new EventFeed({
      modelStatus: () => modelStatus(catalogue, residency),
      activeProfile: () => profiles.active,
      inflight: () => this.#inflight.snapshot(),
      logBook: this.#logBook,
    });
    const [activity, captures] = [new Activity(), new Captures()];
    this.#meter = new Meter(activity, captures, (id) => this.#events.activityAdded(id));
    const machine = new Machine(() => ({
      resident: residency.resident,
      isBusy: this.#log.isGpuBusy,
    }));
    const told = { events: this.#events, inflight: this.#inflight, logBook: this.#logBook };
    const parts = { catalogue, residency, profiles, activity, captures, machine, ...told };
    this.#router = new Router(parts);
    this.#sockets = new Sockets({ catalogue, residency, router: this.#router, log: this.#log });
  }

  get url(): string {
    return this.#url;
  }

  get record(): readonly RequestRecord[] {
    return this.#log.records;
  }

  get overlaps(): number {
    return this.#log.overlaps;
  }

  get maxConcurrent(): number {
    return this.#log.maxConcurrent;
  }

  get residentModel(): string | null {
    return this.#residency.resident;
  }

  get loads(): number {
    return this.#residency.loads;
  }

  get swaps(): number {
    return this.#residency.swaps;
  }

  async listen(port: number, host: string): Promise<number> {
    // Go's server limits neither times nor, in practice, headers.
    const limits = { requestTimeout: 0, headersTimeout: 0, keepAliveTimeout: 0 };
    const server = createServer({ ...limits, maxHeaderSize: 1024 * 1024 }, (request, response) => {
      void this.#serve(request, response);
    });
    server.on('upgrade', (request, socket, first) => {
      const plain = (): void => void this.#serve(request, responseOn(request, socket));
      const isOpen = isAuthorized(
        this.#settings.apiKeys,
        'GET',
        splitTarget(request.url ?? '/').path,
        request.headers,
      );
      if (!isOpen || !this.#sockets.open(request, socket, first)) plain();
    });
    server.listen(port, host);
    await once(server, 'listening');
    this.#server = server;
    const address = server.address() as AddressInfo;
    this.#url = `http://${address.family === 'IPv6' ? `[${address.address}]` : address.address}:${address.port}`;
    return address.port;
  }

  async close(): Promise<void> {
    const server = this.#server;
    if (server === undefined) return;
    this.#server = undefined;
    const closed = once(server, 'close');
    server.close();
    this.#sockets.destroy();
    server.closeAllConnections();
    await closed;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = 'GET', url: target = '/', headers, rawHeaders } = request;
    const record = this.#log.arrived({ method, target, headers, rawHeaders });
    const onOver: (() => void)[] = [];
    const remoteIp = request.socket.remoteAddress ?? '';
    const answer = new Answer(response, (clientLeft) => {
      record.status = answer.status;
      this.#log.ended(record, clientLeft);
      for (const act of onOver) act();
      const line = accessLine(record, remoteIp, answer.sentBytes);
      if (line !== undefined) this.#logBook.write({ kind: 'proxy' }, line);
    });
    try {
      const body = await readBody(request, record);
      if (this.#settings.keepBodies) record.body = body;
      answer.signal.throwIfAborted();
      const { path, rawQuery } = splitTarget(target);
      const query = new URLSearchParams(rawQuery);
      const exchange = { method, path, rawQuery, query, headers, body, answer };
      await this.#answer(exchange, record, onOver, remoteIp);
    } catch (error) {
      if (error instanceof AnswerOverError || answer.signal.aborted) return;
      const message = error instanceof Error ? error.message : String(error);
      if (answer.status === null)
        await sendError(answer, headers, 500, `unspecific error: ${message}`);
      else answer.hangUp();
    }
  }

  async #answer(
    exchange: Exchange,
    record: RequestInProgress,
    onOver: (() => void)[],
    remoteIp: string,
  ): Promise<void> {
    const { answer, body, headers, method, path } = exchange;
    if (!isAuthorized(this.#settings.apiKeys, method, path, headers)) {
      const realm = { 'WWW-Authenticate': 'Basic realm="llama-swap"' };
      await sendError(answer, headers, 401, 'unauthorized: invalid or missing API key', realm);
      return;
    }
    const route = this.#router.route(exchange);
    if (route.needsModel) {
      record.model = route.model.id;
      record.gpu = route.takesGpu;
    }
    const fault = this.#settings.intercept(record, body);
    if (!route.needsModel) {
      if (fault === undefined || (await performFault(fault, answer))) await route.run();
      return;
    }
    const used = { input: 0, output: 0 };
    if (route.isMetered) onOver.push(this.#meter.begin(exchange, record, used));
    const work: Work = { route, used, isWaiting: needsGpu(route.model) };
    onOver.push(() => this.#inflight.ended(record.id));
    this.#inflight.began(record.id, inflightEntry(record, remoteIp, new Date()), () => {
      if (work.isWaiting) answer.cancelledWaiting();
      else answer.modelDied();
    });
    const leave =
      fault?.kind === 'answer' ? (): void => undefined : this.#admission.enter(route.model);
    if (leave === undefined) {
      await sendTooMany(answer);
      return;
    }
    onOver.push(leave);
    if (record.gpu && fault?.kind !== 'answer') this.#log.tookGpu(record);
    await this.#generate(exchange, record, work, fault, onOver);
  }

  async #generate(
    exchange: Exchange,
    record: RequestInProgress,
    work: Work,
    fault: DemoFault | undefined,
    onOver: (() => void)[],
  ): Promise<void> {
    const { answer, body, headers, method, query } = exchange;
    if (fault !== undefined && strikesBeforeLoad(fault)) {
      await performFault(fault, answer);
      return;
    }
    const { route, used } = work;
    if (needsGpu(route.model)) await this.#load(route.model.id, answer, onOver);
    work.isWaiting = false;
    if (fault !== undefined && !(await performFault(fault, answer))) return;
    const { endpoint, ...target } = route;
    const seed = Buffer.from(record.bodySha256 ?? '', 'hex');
    const contentType = headers['content-type'] ?? '';
    const times = this.#times;
    const holdGpu = (): (() => void) => this.#log.hold(record);
    const facts = { answer, body, seed, contentType, method, query, times, used, holdGpu };
    await endpoint({ ...target, ...facts });
  }

  async #load(modelId: string, answer: Answer, onOver: (() => void)[]): Promise<void> {
    const lease = await this.#residency.acquire(modelId, answer.signal);
    onOver.push(() => lease.release());
    if (answer.signal.aborted) lease.release();
    answer.signal.throwIfAborted();
    lease.unloaded.addEventListener('abort', () => answer.modelDied(), { once: true });
  }
}

async function readBody(request: IncomingMessage, record: RequestInProgress): Promise<Buffer> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces);
  record.bodyBytes = body.length;
  record.bodySha256 = createHash('sha256').update(body).digest('hex');
  return body;
}
