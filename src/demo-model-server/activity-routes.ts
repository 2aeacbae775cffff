import type { Activity } from './activity.ts';
import { pageOf } from './activity-query.ts';
import { statsOf } from './activity-stats.ts';
import type { Captures } from './captures.ts';
import { get, sendJson, type ControlEntry } from './control-route.ts';
import { sendError } from './errors.ts';

/** The list of metered requests, its sums, and what is kept of single ones. */
export function activityRoutes(activity: Activity, captures: Captures): ControlEntry[] {
  return [
    [
      '/api/metrics/activity',
      get(async (exchange) => {
        const page = pageOf(activity.rows, exchange.query);
        if (typeof page === 'string') await sendError(exchange.answer, exchange.headers, 400, page);
        else await sendJson(exchange, page);
      }),
    ],
    [
      '/api/metrics/stats',
      get((exchange) => {
        const model = (exchange.query.get('model') ?? '').trim();
        return sendJson(
          exchange,
          statsOf(activity.rows.filter((row) => model === '' || row.model === model)),
        );
      }),
    ],
    [
      '/api/captures/*',
      get(async (exchange, rest) => {
        const { answer, headers } = exchange;
        const found = /^-?\d+$/.test(rest) ? captures.find(Number(rest)) : undefined;
        if (found !== undefined) await sendJson(exchange, found);
        else if (/^-?\d+$/.test(rest)) await sendError(answer, headers, 404, 'capture not found');
        else await sendError(answer, headers, 400, 'invalid capture id');
      }),
    ],
  ];
}
