import type { RequestHandler } from 'express';
import { GatewayError } from '../../errors.ts';
import { viewFor } from '../../gateway/queue-view.ts';
import type { QueueView } from '../../gateway/queue-view.ts';
import { sendError } from '../error-response.ts';
import { identityOf } from '../identity.ts';

/**
 * `GET /berth/queue`: the running job, then the plan of the waiting ones, as the scorer last published it (`as_of`).
 * Who may not administrate sees of others' jobs that they are there, not whose they are.
 *
 * @param plan the published plan, JSON; undefined while there is none
 */
export function queueRoute(plan: () => Promise<string | undefined>): RequestHandler {
  return async (request, response) => {
    const json = await plan().catch(() => undefined);
    if (json === undefined) {
      const message = 'there is no plan yet: the scorer has not published one';
      sendError(response, new GatewayError('redis_unavailable', message, { retryAfterSeconds: 2 }));
      return;
    }
    const identity = identityOf(request);
    const shown = identity.isAdmin
      ? json
      : JSON.stringify(viewFor(JSON.parse(json) as QueueView, identity.member));
    response.setHeader('Cache-Control', 'no-store');
    response.type('application/json').send(shown);
  };
}
