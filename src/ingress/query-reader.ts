import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../errors.ts';

/** Reads the query of a request of Berth's own. Every fault is a GatewayError `bad_request` naming the parameter. */
export class QueryReader {
  private readonly query: URLSearchParams;

  constructor(request: IncomingMessage & { originalUrl?: string }) {
    const target = request.originalUrl ?? request.url ?? '/';
    this.query = new URLSearchParams(/\?(.*)$/s.exec(target)?.[1] ?? '');
  }

  /** The value of a parameter; null when it is absent or empty. */
  text(name: string): string | null {
    const values = this.query.getAll(name);
    if (values.length > 1) throw bad(name, 'came more than once');
    return values[0] === undefined || values[0] === '' ? null : values[0];
  }

  /** A whole number from 0 on; larger ones than `most` count as that. Null: absent. */
  whole(name: string, most = Number.MAX_SAFE_INTEGER): number | null {
    const text = this.text(name);
    if (text === null) return null;
    if (!/^\d{1,15}$/.test(text)) throw bad(name, 'is a whole number from 0 on');
    return Math.min(most, Number(text));
  }

  /** Words of a list with commas, each one of `known`. Null: absent. */
  words<Word extends string>(name: string, known: readonly Word[]): Word[] | null {
    return (
      this.text(name)
        ?.split(',')
        .map((word) => {
          const found = known.find((one) => one === word.trim());
          if (found === undefined) throw bad(name, `is one or more of ${known.join(', ')}`);
          return found;
        }) ?? null
    );
  }
}

const bad = (name: string, what: string): GatewayError =>
  new GatewayError('bad_request', `the parameter ${name} ${what}`, { param: name });
