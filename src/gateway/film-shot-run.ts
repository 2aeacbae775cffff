import type { AttendShot, FilmStore, NextShot, ShotRun } from '../ports/film-store.ts';
import type { ResponseHead, ResponseLogWriter } from '../ports/response-log.ts';
import { makeShot, openTemplate } from './film-template.ts';
import type { ShotMaking, ShotTemplate } from './film-template.ts';

/** Longest result that values are taken from, in bytes. */
const LONGEST_RESULT = 64 * 1024 * 1024;

/** What attending shots needs. */
export interface ShotAttendance extends ShotMaking {
  readonly films: Pick<FilmStore, 'template'>;
}

/**
 * Attends the runs of shots: the next shot is made ready while one runs, so that it can arrive in the very step in which
 * that one is settled. What it takes from the result is kept on its way to the log.
 */
export function createAttendShot(attendance: ShotAttendance): AttendShot {
  return (job, log) => {
    const { film } = job.facts;
    if (film === undefined) return undefined;
    return new AttendedShot(film.id, film.shot + 1, log, attendance);
  };
}

class AttendedShot implements ShotRun {
  readonly log: ResponseLogWriter;
  private readonly made: Promise<NextShot | ShotTemplate | undefined>;
  private readonly attendance: ShotAttendance;
  private readonly filmId: string;
  private readonly shot: number;
  private status = 0;
  private kept: Buffer[] | undefined = [];
  private keptBytes = 0;

  constructor(filmId: string, shot: number, log: ResponseLogWriter, attendance: ShotAttendance) {
    this.filmId = filmId;
    this.shot = shot;
    this.attendance = attendance;
    this.log = this.overhearing(log);
    this.made = this.makeAhead();
  }

  fault(): { code: string; message: string } | undefined {
    if (this.status < 400) return undefined;
    const message = `the model server answered ${this.status}`;
    return { code: 'model_server_invalid', message };
  }

  async next(): Promise<NextShot | undefined> {
    const made = await this.made;
    if (made === undefined || !('take' in made)) return made;
    const result = this.kept === undefined ? undefined : Buffer.concat(this.kept);
    return this.make(made, result);
  }

  /** The next shot; only its template while it takes something from this one. Never rejects. */
  private async makeAhead(): Promise<NextShot | ShotTemplate | undefined> {
    const { films } = this.attendance;
    try {
      const sealed = await films.template(this.filmId, this.shot);
      if (sealed === undefined) return undefined;
      const template = openTemplate(this.filmId, this.shot, sealed, this.attendance);
      // A body in the store that no job owns yet would be swept away during a long run.
      if (template.take.length > 0 || typeof template.body === 'object') return template;
      this.kept = undefined;
      return await this.make(template, undefined);
    } catch {
      return { reason: `shot ${this.shot} cannot be read any more` };
    }
  }

  private async make(template: ShotTemplate, result: Buffer | undefined): Promise<NextShot> {
    try {
      return await makeShot(this.filmId, this.shot, template, result, this.attendance);
    } catch {
      return { reason: `shot ${this.shot} cannot be read any more` };
    }
  }

  private overhearing(log: ResponseLogWriter): ResponseLogWriter {
    return {
      head: (head: ResponseHead) => {
        this.status = head.status;
        log.head(head);
      },
      write: async (bytes) => {
        this.keep(bytes);
        await log.write(bytes);
      },
      drain: async () => log.drain(),
      get bytes() {
        return log.bytes;
      },
    };
  }

  private keep(bytes: Buffer): void {
    this.keptBytes += bytes.length;
    if (this.keptBytes > LONGEST_RESULT) this.kept = undefined;
    this.kept?.push(bytes);
  }
}
