/**
 * Every Redis key of one pool. All carry the hash tag `{berth}`, so they live in one slot, and the pool's name,
 * so a second GPU host is a second pool.
 */
export interface PoolKeys {
  /** Common prefix, `{berth}:<pool>`; also BullMQ's prefix. */
  pool: string;
  /** Prefix of BullMQ's gpu queue with its closing colon: `<prefix>id` is a job's hash. */
  queue: string;
  control: string;
  /** The stream of everything that happened to waiting and running jobs, and where it stands. */
  journal: string;
  journalHead: string;
  /** The stream of dispatch records. */
  dispatches: string;
  ingresses: string;
  /** The list of ends that clients asked to be told of. */
  outbox: string;
  log(jobId: string): string;
  payload(jobId: string): string;
  alive(ingressId: string): string;
  poke(ingressId: string): string;
  registry(process: string, instance: string): string;
}

/** BullMQ's name of the queue that holds GPU jobs. */
export const GPU_QUEUE = 'gpu';
/** BullMQ's name of the queue that holds the scorer's repeating job. */
export const SCORER_QUEUE = 'scorer';
/** BullMQ's name of the queue that holds deliveries of webhooks. */
export const WEBHOOK_QUEUE = 'webhooks';
/** Holds the layout version of everything under `{berth}`. */
export const META_KEY = '{berth}:meta';

/** Makes the keys of a pool (`[a-z0-9-]{1,32}`, checked by the configuration). */
export function poolKeys(poolName: string): PoolKeys {
  const pool = `{berth}:${poolName}`;
  return {
    pool,
    queue: `${pool}:${GPU_QUEUE}:`,
    control: `${pool}:control`,
    journal: `${pool}:journal`,
    journalHead: `${pool}:journal:head`,
    dispatches: `${pool}:dispatches`,
    ingresses: `${pool}:ingresses`,
    outbox: `${pool}:outbox`,
    log: (jobId) => `${pool}:log:${jobId}`,
    payload: (jobId) => `${pool}:payload:${jobId}`,
    alive: (ingressId) => `${pool}:alive:${ingressId}`,
    poke: (ingressId) => `${pool}:poke:${ingressId}`,
    registry: (process, instance) => `${pool}:registry:${process}:${instance}`,
  };
}
