/**
 * A route whose answer comes before its work is done: it names an id, and polls with that id tell when the work has
 * ended. `{id}` in the templates below stands for it. Paths are relative to the submitting one, as links of a page are.
 */
export interface AsyncUpstream {
  /** Path of the submitting POST; `*` is one or more segments. */
  readonly path: string;
  /** Path that is asked for before, so that the model server loads what `path` itself may not load. */
  readonly load?: string | undefined;
  /** JSON Pointer to the id in the submit answer. */
  readonly idPointer: string;
  /** Path that tells how the work stands. */
  readonly poll: string;
  /** JSON Pointer into the poll's answer: anything but nothing, null, false, 0 and an empty text there means done. */
  readonly donePointer: string;
  /** Likewise: the work has failed; only if it equals `errorValue`, where that is given. */
  readonly errorPointer?: string | undefined;
  readonly errorValue?: string | undefined;
  /** Path whose answer names the id for as long as the work waits or runs there. */
  readonly pending?: string | undefined;
  /** What to POST, in this order, to stop the work. */
  readonly cancel?: readonly { readonly path: string; readonly body: string }[] | undefined;
  /** Between two polls. */
  readonly pollSeconds: number;
  /** Longest work; it is stopped then. */
  readonly timeoutSeconds: number;
}

/** Ids that can stand in a path and in JSON as they are. */
const ID = /^[\w.:~-]{1,200}$/;

/** The entry for a request, by its method and raw target; the first one that fits. */
export function asyncUpstreamFor(
  method: string,
  target: string,
  upstreams: readonly AsyncUpstream[],
): AsyncUpstream | undefined {
  if (method !== 'POST') return undefined;
  const [path = ''] = target.split('?', 1);
  return upstreams.find((upstream) => patternOf(upstream.path).test(path));
}

/** Where a relative path leads from the path of a request, without its query. */
export function relativeTo(target: string, path: string): string {
  const [base = '/'] = target.split('?', 1);
  return path.startsWith('/') ? path : base.slice(0, base.lastIndexOf('/') + 1) + path;
}

/** A template with the id in its place. */
export const withId = (template: string, id: string): string => template.replaceAll('{id}', id);

/** The id in a submit answer; undefined when there is none, or none that can be used. */
export function idIn(text: string, pointer: string): string | undefined {
  const value = at(parsed(text), pointer);
  const id = typeof value === 'number' ? String(value) : value;
  return typeof id === 'string' && ID.test(id) ? id : undefined;
}

/** What a poll's answer says of the work. */
export function standing(
  upstream: AsyncUpstream,
  id: string,
  text: string,
): 'done' | 'failed' | 'going on' {
  const value = parsed(text);
  const { donePointer, errorPointer, errorValue } = upstream;
  if (errorPointer !== undefined) {
    const error = at(value, withId(errorPointer, id));
    if (errorValue === undefined ? Boolean(error) : error === errorValue) return 'failed';
  }
  return at(value, withId(donePointer, id)) ? 'done' : 'going on';
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** RFC 6901. */
function at(value: unknown, pointer: string): unknown {
  let found = value;
  for (const token of pointer.split('/').slice(1)) {
    const key = token.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, key)) return undefined;
    found = (found as Record<string, unknown>)[key];
  }
  return found;
}

function patternOf(path: string): RegExp {
  const parts = path.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${parts.join('[^/].*')}$`);
}
