import type { ActivityRow } from './activity.ts';

/** One page of the list, as `/api/metrics/activity` answers it. */
export interface ActivityPage {
  readonly data: readonly ActivityRow[];
  readonly page: number;
  readonly limit: number;
  readonly total: number;
  readonly total_pages: number;
}

/** What each sort key of the web page compares. */
const sortKeys: ReadonlyMap<string, (row: ActivityRow) => string | number> = new Map<
  string,
  (row: ActivityRow) => string | number
>([
  ['id', ({ id }) => id],
  ['time', ({ timestamp }) => timestamp],
  ['model', ({ model }) => model],
  ['req_path', ({ req_path }) => req_path],
  ['resp_status_code', ({ resp_status_code }) => resp_status_code],
  ['resp_content_type', ({ resp_content_type }) => resp_content_type],
  ['cached', ({ tokens }) => tokens.cache_tokens],
  ['prompt', ({ tokens }) => tokens.input_tokens],
  ['generated', ({ tokens }) => tokens.output_tokens],
  ['drafted', ({ tokens }) => tokens.draft_tokens],
  ['prompt_speed', ({ tokens }) => tokens.prompt_per_second],
  ['gen_speed', ({ tokens }) => tokens.tokens_per_second],
  ['duration', ({ duration_ms }) => duration_ms],
]);

/**
 * The page that a query asks for: `model` (repeatable), `start`, `end`, `min_id`, `max_id`, `limit` (1 to 999, 25),
 * `page` (1), `sort` (id), `order` (desc). A text instead of a page says what is wrong with the query.
 */
export function pageOf(
  rows: readonly ActivityRow[],
  query: URLSearchParams,
): ActivityPage | string {
  const limit = whole(query, 'limit', 25);
  if (!(limit >= 1 && limit <= 999)) return 'limit must be between 1 and 999';
  const page = whole(query, 'page', 1);
  if (!(page >= 1)) return 'page must be 1 or more';
  const key = sortKeys.get(query.get('sort') ?? 'id');
  if (key === undefined) return 'sort names no column';
  const order = (query.get('order') ?? 'desc').toLowerCase();
  if (order !== 'asc' && order !== 'desc') return 'order must be asc or desc';
  const [from, to] = [time(query, 'start', -Infinity), time(query, 'end', Infinity)];
  const [least, most] = [whole(query, 'min_id', 0), whole(query, 'max_id', Infinity)];
  if ([from, to, least, most].some(Number.isNaN))
    return 'start, end, min_id or max_id cannot be read';
  const models = query.getAll('model').filter((id) => id.trim() !== '');
  const found = rows.filter(({ id, model, timestamp }) => {
    const at = Date.parse(timestamp);
    const isMeant = models.length === 0 || models.includes(model);
    return isMeant && at >= from && at <= to && id >= least && id <= most;
  });
  const sign = order === 'asc' ? 1 : -1;
  const sorted = found.toSorted((a, b) => {
    const [one, other] = [key(a), key(b)];
    if (one === other) return sign * (a.id - b.id);
    return one < other ? -sign : sign;
  });
  return {
    data: sorted.slice((page - 1) * limit, page * limit),
    page,
    limit,
    total: found.length,
    total_pages: Math.ceil(found.length / limit),
  };
}

/** NaN when it is no whole number. */
function whole(query: URLSearchParams, name: string, usual: number): number {
  const text = (query.get(name) ?? '').trim();
  if (text === '') return usual;
  return /^\d+$/.test(text) ? Number(text) : NaN;
}

/** Milliseconds since 1970; NaN when it is no time. */
function time(query: URLSearchParams, name: string, usual: number): number {
  const text = (query.get(name) ?? '').trim();
  return text === '' ? usual : Date.parse(text);
}
