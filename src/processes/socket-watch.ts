import type { UpgradeRoute } from '../ingress/routes/upgrade.ts';
import { NO_MODEL } from '../ports/job-queue.ts';
import type { Logger } from '../ports/logger.ts';
import type { ModelCatalogue, ModelStates } from '../ports/model-server.ts';

/** What is watched. */
export interface SocketWatchOptions {
  route: Pick<UpgradeRoute, 'heldModels' | 'giveWay'>;
  catalogue: Pick<ModelCatalogue, 'resolve'> & ModelStates;
  /** The model of the running job. */
  running: () => Promise<string | undefined>;
  log: Logger;
  /** Milliseconds between two looks; default 500. */
  everyMs?: number;
}

/**
 * Cuts the sockets of a model that keep the running job's model from being loaded: llama-swap waits for them without
 * end. A job is blocked when it was seen twice in a row with its model not even starting while a model with sockets is
 * ready; where models are loaded side by side, no job ever is. Looks only while there are such sockets; the caller
 * clears the interval.
 */
export function watchSockets(options: SocketWatchOptions): NodeJS.Timeout {
  const { route, everyMs = 500 } = options;
  let blocked: string | undefined;
  let isLooking = false;
  const look = async (): Promise<void> => {
    const wanted = await blockedModel(options);
    if (wanted !== undefined && wanted === blocked) cut(options, wanted);
    blocked = wanted;
  };
  return setInterval(() => {
    if (isLooking || route.heldModels.size === 0) return;
    isLooking = true;
    look()
      .catch(() => (blocked = undefined))
      .finally(() => (isLooking = false));
  }, everyMs);
}

async function blockedModel(options: SocketWatchOptions): Promise<string | undefined> {
  const { catalogue, route, running } = options;
  const asked = await running();
  if (asked === undefined || asked === NO_MODEL) return undefined;
  if ((await catalogue.stateOf(asked)) !== 'stopped') return undefined;
  const wanted = catalogue.resolve(asked);
  return route.heldModels.has(wanted) ? undefined : wanted;
}

function cut({ route, log }: SocketWatchOptions, wanted: string): void {
  for (const model of route.heldModels)
    log.info({ model, sockets: route.giveWay(model), wanted }, 'sockets.gave_way');
}
