import type { Exchange } from './exchange.ts';

/** A route that needs no GPU. GET stands for HEAD too. */
export interface ControlRoute {
  readonly methods: readonly string[];
  /** `rest` is what the path has beyond the route's own beginning, percent-decoded; empty at an exact path. */
  readonly run: (exchange: Exchange, rest: string) => Promise<void>;
}

/** A path and its route; one that ends in `/*` stands for everything below it. */
export type ControlEntry = readonly [path: string, route: ControlRoute];

/** A route for GET and HEAD. */
export function get(run: ControlRoute['run']): ControlRoute {
  return { methods: ['GET', 'HEAD'], run };
}

/** Answers 200 with JSON as Go writes it, a line end behind it. */
export async function sendJson({ answer }: Exchange, value: object, status = 200): Promise<void> {
  const type = { 'Content-Type': 'application/json' };
  await answer.send(status, type, `${JSON.stringify(value)}\n`);
}

/** Answers with a redirect as Go's router does; GET gets a short page with it. */
export async function redirect(
  exchange: Exchange,
  status: 301 | 302 | 307 | 308,
  location: string,
): Promise<void> {
  const words = {
    301: 'Moved Permanently',
    302: 'Found',
    307: 'Temporary Redirect',
    308: 'Permanent Redirect',
  };
  const isGet = exchange.method === 'GET' || exchange.method === 'HEAD';
  const page = isGet
    ? `<a href="${location.replaceAll('"', '&#34;')}">${words[status]}</a>.\n\n`
    : '';
  const type = isGet ? { 'Content-Type': 'text/html; charset=utf-8' } : {};
  await exchange.answer.send(status, { Location: location, ...type }, page);
}

/** Finds control routes by path. */
export class ControlTable {
  readonly #exact = new Map<string, ControlRoute>();
  readonly #below: (readonly [beginning: string, route: ControlRoute])[] = [];

  constructor(entries: readonly ControlEntry[]) {
    for (const [path, route] of entries) {
      if (path.endsWith('/*')) this.#below.push([path.slice(0, -1), route]);
      else this.#exact.set(path, route);
    }
  }

  /** The route at a path, an exact one before those of everything below; undefined when there is none. */
  find(path: string): { readonly route: ControlRoute; readonly rest: string } | undefined {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return { route: exact, rest: '' };
    const below = this.#below.find(([beginning]) => path.startsWith(beginning));
    if (below === undefined) return undefined;
    return { route: below[1], rest: decoded(path.slice(below[0].length)) };
  }
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
