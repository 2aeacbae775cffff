import { GatewayError } from '../errors.ts';
import type {
  FilmAnswer,
  FilmRecord,
  FilmStore,
  NextShot,
  ResultReader,
  ShotOffer,
} from '../ports/film-store.ts';
import type { IdempotencyKey, MemberCaps } from '../ports/job-queue.ts';
import { closeTemplate, makeShot, openTemplate } from './film-template.ts';
import type { ShotMaking, ShotTemplate } from './film-template.ts';

/** What films need. */
export interface FilmServiceDependencies extends ShotMaking {
  readonly films: FilmStore;
  readonly results: ResultReader;
}

/** A film to be made. */
export interface FilmOrder {
  /** Lower-case UUIDv4. */
  readonly id: string;
  readonly member: string;
  readonly caps: MemberCaps;
  readonly templates: readonly ShotTemplate[];
  readonly idempotency?: IdempotencyKey | undefined;
}

/** Bytes of sealed templates that are stored in one command. */
const STAGE_BYTES = 1024 * 1024;
/** Answers `make` or `changed` after which a change is given up. */
const MOST_LOOKS = 5;

/** Makes films and changes them for their members, and looks after them for the scorer. */
export class FilmService {
  private readonly dependencies: FilmServiceDependencies;

  constructor(dependencies: FilmServiceDependencies) {
    this.dependencies = dependencies;
  }

  /**
   * Durable when it resolves, and nothing is left of it when it throws. Resolves to the film's id: another one than was asked
   * for when its Idempotency-Key has a film.
   */
  async create({ id, member, caps, templates, idempotency }: FilmOrder): Promise<string> {
    const { films } = this.dependencies;
    const [first] = templates;
    if (first === undefined) throw new GatewayError('bad_request', 'a film has shots');
    const made = await makeShot(id, 1, first, undefined, this.dependencies);
    if ('reason' in made) throw new GatewayError('bad_request', made.reason);
    let batch: Buffer[] = [];
    let [bytes, from] = [0, 1];
    for (const [index, template] of templates.entries()) {
      const sealed = closeTemplate(id, index + 1, template, this.dependencies);
      batch.push(sealed);
      bytes += sealed.length;
      if (bytes < STAGE_BYTES && index < templates.length - 1) continue;
      await films.stage(id, from, batch);
      [batch, bytes, from] = [[], 0, index + 2];
    }
    const total = templates.length;
    return films.create({ id, member, total, caps, first: made.job, idempotency });
  }

  /** What runs ends, and no shot follows until `resume`. */
  async pause(filmId: string): Promise<void> {
    this.settle(await this.dependencies.films.pause(filmId), 'paused');
  }

  /** A paused film goes on with the shot it stands at. */
  async resume(filmId: string): Promise<void> {
    await this.goOn(filmId, 'paused', 'resumed');
  }

  /** The shot a film failed at is tried again. */
  async retry(filmId: string): Promise<void> {
    await this.goOn(filmId, 'failed', 'retried');
  }

  /** The film goes on without the shot it stands at, unless that one runs. */
  async skip(filmId: string): Promise<void> {
    const film = await this.dependencies.films.read(filmId);
    if (film === undefined) throw gone();
    const offer = await this.offer(film, film.done + 2);
    this.settle(await this.dependencies.films.skip(filmId, offer), 'told to skip a shot');
  }

  /** A waiting shot goes, one that runs is aborted. */
  async cancel(filmId: string): Promise<void> {
    this.settle(await this.dependencies.films.cancel(filmId), 'cancelled');
  }

  /** Looks after films that run: each has a shot waiting or running. Returns those that had not. */
  async repair(): Promise<string[]> {
    const { films } = this.dependencies;
    const repaired: string[] = [];
    for (const filmId of await films.running()) {
      let answer = await films.repair(filmId);
      const film = answer === 'make' ? await films.read(filmId) : undefined;
      if (film !== undefined)
        answer = await films.repair(filmId, await this.offer(film, film.done + 1));
      if (answer === 'repaired') repaired.push(filmId);
    }
    return repaired;
  }

  private async goOn(filmId: string, from: 'paused' | 'failed', what: string): Promise<void> {
    const { films } = this.dependencies;
    let answer = await films.resume(filmId, from);
    for (let look = 1; answer === 'make' && look <= MOST_LOOKS; look += 1) {
      const film = await films.read(filmId);
      if (film === undefined) throw gone();
      answer = await films.resume(filmId, from, await this.offer(film, film.done + 1));
    }
    this.settle(answer, what);
  }

  private async offer(film: FilmRecord, shot: number): Promise<ShotOffer> {
    return { done: film.done, next: await this.shotOf(film, shot) };
  }

  private async shotOf(film: FilmRecord, shot: number): Promise<NextShot | undefined> {
    const { films, results } = this.dependencies;
    if (shot > film.total) return undefined;
    const sealed = await films.template(film.id, shot);
    if (sealed === undefined) return { reason: `shot ${shot} is not kept any more` };
    const template = openTemplate(film.id, shot, sealed, this.dependencies);
    const previous =
      template.take.length > 0 && film.lastJobId !== null
        ? await results.bodyOf(film.lastJobId)
        : undefined;
    return makeShot(film.id, shot, template, previous, this.dependencies);
  }

  private settle(answer: FilmAnswer, what: string): void {
    if (answer === 'ok') return;
    if (answer === 'gone') throw gone();
    const why =
      answer === 'runs'
        ? 'its shot runs; pause the film and wait, or cancel that shot'
        : answer === 'changed' || answer === 'make'
          ? 'it went on meanwhile; look again'
          : `it is ${answer}`;
    throw new GatewayError('bad_request', `the film cannot be ${what}: ${why}`);
  }
}

const gone = (): GatewayError => new GatewayError('job_not_found', 'there is no such film');
