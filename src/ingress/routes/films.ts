import { createHash, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Router } from 'express';
import type { Request, Response } from 'express';
import { GatewayError } from '../../errors.ts';
import type { RejectCode } from '../../errors.ts';
import type { FilmService } from '../../gateway/film-service.ts';
import { fileName, storeBody } from '../../gateway/film-template.ts';
import type { ShotTemplate } from '../../gateway/film-template.ts';
import { filmPath, filmSummary, shotObjects } from '../../gateway/film-view.ts';
import type { FilmObject, FilmSummary } from '../../gateway/film-view.ts';
import { templateOf } from '../../gateway/shot-facts.ts';
import { webhookOf } from '../../gateway/webhook-request.ts';
import type { Rules } from '../../policy/rules.ts';
import type { BodyStore } from '../../ports/body-store.ts';
import type { FilmRecord, FilmStore } from '../../ports/film-store.ts';
import type { FilmList } from '../api/film-schemas.ts';
import { INLINE_BYTES } from '../body-intake.ts';
import { drain } from '../drain.ts';
import { asGatewayError, sendError } from '../error-response.ts';
import { FILM_BYTES, readFilm } from '../film-request.ts';
import { identityOf } from '../identity.ts';
import { scopeOf } from '../job-scope.ts';
import { idempotencyOf } from '../request-terms.ts';
import type { PublishedPlan } from '../published-plan.ts';
import { admitShot, refuseShotTerms } from '../shot-admission.ts';
import type { ShotAdmission } from '../shot-admission.ts';

/** What the routes of films need. */
export interface FilmRoutesDependencies extends ShotAdmission {
  readonly service: FilmService;
  readonly films: FilmStore;
  readonly store: BodyStore;
  readonly mayStore: () => boolean;
  readonly rules: Rules;
  readonly positions: PublishedPlan;
  /** Why no new job may be taken right now, if so. */
  readonly refusal: () => RejectCode | undefined;
}

/** Films a list shows. */
const LISTED = 100;
/** Between two looks at a film that is followed, and between two signs of life, in ms. */
const LOOK_MS = 300;
const PULSE_MS = 15_000;

const CHANGES = ['pause', 'resume', 'retry', 'skip', 'cancel'] as const;

/** `/berth/films`: chains of requests of which one waits or runs at a time. */
export class FilmRoutes {
  private readonly dependencies: FilmRoutesDependencies;
  private readonly stopping = new AbortController();

  constructor(dependencies: FilmRoutesDependencies) {
    this.dependencies = dependencies;
  }

  /** The routes below `/berth/films`. */
  router(): Router {
    const router = Router();
    const { service } = this.dependencies;
    router.post(
      '/',
      guarded(async (request, response) => this.create(request, response)),
    );
    router.get(
      '/',
      guarded(async (request, response) => this.list(request, response)),
    );
    router.get(
      '/:id',
      guarded(async (request, response) => this.show(request, response)),
    );
    router.get(
      '/:id/events',
      guarded(async (request, response) => this.follow(request, response)),
    );
    const change = (what: (typeof CHANGES)[number]) =>
      guarded(async (request, response) => {
        const film = await this.filmOf(request);
        await service[what](film.id);
        await this.show(request, response);
      });
    for (const what of CHANGES) router.post(`/:id/${what}`, change(what));
    router.delete('/:id', change('cancel'));
    return router;
  }

  /** Ends what follows films. */
  close(): void {
    this.stopping.abort();
  }

  private async create(request: Request, response: Response): Promise<void> {
    const { service, store, films, refusal, rules, mayStore } = this.dependencies;
    const identity = identityOf(request);
    const code = refusal();
    if (code !== undefined) throw new GatewayError(code, 'no new films are taken right now');
    refuseShotTerms(request);
    const webhook = webhookOf(
      request.headersDistinct['x-berth-webhook'] ?? [],
      this.dependencies.webhookFault,
    );
    const body = await whole(request);
    const asked = readFilm(body);
    const bodySha256 = createHash('sha256').update(body).digest('hex');
    const idempotency = idempotencyOf(request, { member: identity.member, bodySha256 });
    const known = idempotency && (await films.known(idempotency));
    if (known !== undefined) return this.made(known, response);
    const id = randomUUID();
    const templates: ShotTemplate[] = [];
    const large: [shot: number, bytes: Buffer][] = [];
    let bytes = 0;
    for (const [index, shot] of asked.entries()) {
      const admitted = await admitShot(shot, index, request, identity, this.dependencies);
      const text = shot.body === undefined || shot.body === null ? null : JSON.stringify(shot.body);
      const length = text === null ? 0 : Buffer.byteLength(text);
      bytes += length;
      const isLarge = length > INLINE_BYTES;
      if (isLarge && text !== null) large.push([index + 1, Buffer.from(text)]);
      const kept = isLarge ? ({ file: true } as const) : text;
      templates.push(
        templateOf({ ...admitted, body: kept, webhook: admitted.webhook ?? webhook }, rules),
      );
    }
    if (identity.caps.bytes !== null && bytes > identity.caps.bytes)
      throw new GatewayError('member_queue_full', 'the film is larger than your jobs may be', {
        retryAfterSeconds: 3600,
      });
    if (large.length > 0 && !mayStore())
      throw new GatewayError(
        'storage_full',
        'shots this large need a body store that the worker shares',
      );
    let stands: string;
    try {
      for (const [shot, part] of large) await storeBody(store, fileName(id, shot), part);
      const { member, caps } = identity;
      stands = await service.create({ id, member, caps, templates, idempotency });
    } catch (error) {
      await store.removeJobs([id]).catch(() => undefined);
      throw error;
    }
    if (stands !== id) await store.removeJobs([id]).catch(() => undefined);
    await this.made(stands, response);
  }

  /** 202 with the film, whether it was made now or by an earlier request with its Idempotency-Key. */
  private async made(id: string, response: Response): Promise<void> {
    const film = await this.dependencies.films.read(id);
    if (film === undefined)
      throw new GatewayError('redis_unavailable', 'the film was lost as soon as it was made');
    response.setHeader('Location', filmPath(id));
    response.status(202).json(await this.filmObject(film));
  }

  private async list(request: Request, response: Response): Promise<void> {
    const { films } = this.dependencies;
    const ids = await films.list(scopeOf(request), LISTED);
    const records = await Promise.all(ids.map(async (id) => films.read(id)));
    const known = records.filter((film) => film !== undefined);
    const data = await Promise.all(known.map(async (film) => this.summary(film)));
    const list: FilmList = { object: 'list', data };
    response.json(list);
  }

  private async show(request: Request, response: Response): Promise<void> {
    const film = await this.filmOf(request);
    response.setHeader('Cache-Control', 'no-store');
    response.json(await this.filmObject(film));
  }

  /** An event stream: the film in short at once, at every change, and when it is over, which ends the stream. */
  private async follow(request: Request, response: Response): Promise<void> {
    const { films } = this.dependencies;
    let film: FilmRecord | undefined = await this.filmOf(request);
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const signal = AbortSignal.any([gone.signal, this.stopping.signal]);
    response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' });
    let told = '';
    let toldAt = performance.now();
    while (film !== undefined && !signal.aborted) {
      const look = `${film.revision} ${film.isActive ? 'runs' : 'waits'}`;
      if (look !== told) {
        const data = JSON.stringify(await this.summary(film));
        response.write(`id: ${film.revision}\nevent: film\ndata: ${data}\n\n`);
        [told, toldAt] = [look, performance.now()];
      } else if (performance.now() - toldAt > PULSE_MS) {
        response.write(': berth\n\n');
        toldAt = performance.now();
      }
      if (film.state === 'completed' || film.state === 'cancelled') break;
      await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
      // Redis may be away for a while; the film is not gone for that.
      film = await films.read(film.id).catch(() => film);
    }
    response.end();
  }

  private async summary(film: FilmRecord): Promise<FilmSummary> {
    const place =
      film.jobId === null ? undefined : await this.dependencies.positions.of(film.jobId);
    return filmSummary(film, place?.eta, Date.now());
  }

  private async filmObject(film: FilmRecord): Promise<FilmObject> {
    const shots = shotObjects(film, await this.dependencies.films.shots(film));
    return { ...(await this.summary(film)), shots };
  }

  /** Throws `job_not_found` for another member's film with the same words as for one that never was. */
  private async filmOf(request: Request): Promise<FilmRecord> {
    const scope = scopeOf(request);
    const { id } = request.params;
    const film =
      typeof id === 'string' && UUID.test(id) ? await this.dependencies.films.read(id) : undefined;
    if (film === undefined || (scope !== null && film.member !== scope))
      throw new GatewayError('job_not_found', 'there is no such film');
    return film;
  }
}

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function guarded(
  handle: (request: Request, response: Response) => Promise<void>,
): (request: Request, response: Response) => Promise<void> {
  return async (request, response) => {
    try {
      await handle(request, response);
    } catch (error) {
      const known = asGatewayError(error);
      if (known.code === 'internal_error') throw error;
      sendError(response, known);
      drain(request);
    }
  };
}

async function whole(request: Request): Promise<Buffer> {
  const coding = request.headers['content-encoding'] ?? 'identity';
  if (coding !== 'identity')
    throw new GatewayError('unsupported_encoding', 'a film is sent without a coding');
  const pieces: Buffer[] = [];
  let bytes = 0;
  const body = request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > FILM_BYTES)
      throw new GatewayError('body_too_large', `a film has at most ${FILM_BYTES} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
