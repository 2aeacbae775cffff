import * as z from 'zod';
import { modelServerAddressFault, redisAddressFault } from './server-address.ts';

/** What the reference and the messages say of one variable. */
export interface VariableMeta {
  /** One sentence for the operator. */
  readonly description: string;
  /** What a value must be: completes "… is needed". */
  readonly accepts: string;
  /** Its value may hold a secret and is never repeated. */
  readonly isSecret?: boolean;
}

const port = numberOf({ least: 0, most: 65_535, isWhole: true });

/**
 * The environment. A variable that is unset or empty has its default; a default of null means that unset
 * has a meaning of its own, given in the description.
 */
export const environmentSchema = z.object({
  HOST: variable(
    z
      .string()
      .regex(/^(?:[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+)$/)
      .default('127.0.0.1'),
    {
      description: 'Address the ingress listens on. Without keys it must be loopback.',
      accepts: 'an IP address or a host name, without brackets or port',
    },
  ),
  PORT: variable(port.default(8080), {
    description: 'Port of the ingress; 0: a free one, printed at start.',
    accepts: 'a whole number from 0 to 65535',
  }),
  POOL: variable(
    z
      .string()
      .regex(/^[a-z0-9-]{1,32}$/)
      .default('gpu'),
    {
      description: 'Name of the GPU pool, part of every Redis key; one GPU worker serves one pool.',
      accepts: '1 to 32 lower-case letters, digits and dashes',
    },
  ),
  MODEL_SERVER_URL: variable(addressOf(modelServerAddressFault).nullable().default(null), {
    description:
      'The model server (llama-swap), with its path prefix if it has one. Unset: the demo model server.',
    accepts: 'an http:// or https:// address',
    isSecret: true,
  }),
  MODEL_SERVER_API_KEY: variable(
    z
      .string()
      .regex(/^[\x21-\x7e]+$/)
      .nullable()
      .default(null),
    {
      description: 'Bearer key put on every request to the model server. Unset: none is put on.',
      accepts: 'visible ASCII without blanks',
      isSecret: true,
    },
  ),
  REDIS_URL: variable(addressOf(redisAddressFault).nullable().default(null), {
    description: 'The Redis that keeps the jobs. Unset: a redis-server of its own in DATA_DIR.',
    accepts: 'a redis://, rediss:// or unix:///path address',
    isSecret: true,
  }),
  REDIS_FSYNC: variable(z.enum(['always', 'everysec']).default('always'), {
    description:
      'When the embedded Redis flushes to disk; everysec may lose a second in a power cut.',
    accepts: 'always or everysec',
  }),
  DATA_DIR: variable(z.string().default('./data'), {
    description:
      'Folder of the embedded Redis, large bodies and the sealing key; ingress and worker share it.',
    accepts: 'a folder',
  }),
  BERTH_CONFIG: variable(z.string().nullable().default(null), {
    description: 'JSON file laid over the default settings. Unset: the defaults.',
    accepts: 'a file',
  }),
  BERTH_SECRET: variable(z.string().min(16).nullable().default(null), {
    description:
      'Seals forwarded credentials; the same in all processes. Unset: a key file in DATA_DIR.',
    accepts: 'at least 16 characters',
    isSecret: true,
  }),
  BERTH_ALLOW_OPEN: variable(flag(), {
    description: 'With 1, Berth serves other machines without keys and believes their headers.',
    accepts: '0 or 1',
  }),
  TRUST_PROXY: variable(numberOf({ least: 0, most: 16, isWhole: true }).default(0), {
    description: 'Proxies in front whose forwarding headers are believed, counted in hops.',
    accepts: 'a whole number from 0 to 16',
  }),
  SCORER_INTERVAL_SECONDS: variable(numberOf({ least: 0.1, most: 3600 }).default(15), {
    description: 'Between two scorer passes.',
    accepts: 'a number from 0.1 to 3600',
  }),
  SHUTDOWN_GRACE_SECONDS: variable(numberOf({ least: 0, most: 3600 }).default(8), {
    description: 'What a stop waits for running work before it is handed back.',
    accepts: 'a number from 0 to 3600',
  }),
  WORKER_PORT: variable(port.nullable().default(null), {
    description: "Port of the GPU worker's own /healthz and /metrics; 0: a free one. Unset: off.",
    accepts: 'a whole number from 0 to 65535',
  }),
  SCORER_PORT: variable(port.nullable().default(null), {
    description: "Port of the scorer's own /healthz and /metrics; 0: a free one. Unset: off.",
    accepts: 'a whole number from 0 to 65535',
  }),
  WEBHOOK_ALLOW_PRIVATE: variable(flag(), {
    description: 'With 1, webhooks may go to loopback and private addresses.',
    accepts: '0 or 1',
  }),
  OTEL_EXPORTER_OTLP_ENDPOINT: variable(
    z
      .url({ protocol: /^https?$/ })
      .nullable()
      .default(null),
    {
      description: 'Where traces go. Unset: nowhere.',
      accepts: 'an http:// or https:// address',
      isSecret: true,
    },
  ),
  LOG_LEVEL: variable(z.enum(['silent', 'error', 'warn', 'info', 'debug']).default('info'), {
    description: 'Least severe log line that is written.',
    accepts: 'silent, error, warn, info or debug',
  }),
});

/** The environment after it was read. */
export type Environment = z.output<typeof environmentSchema>;

/** Name of a variable Berth reads. */
export type VariableName = keyof Environment;

/** What is known of a variable beside its schema. */
export function variableMeta(name: VariableName): VariableMeta {
  const { description, accepts, isSecret } = environmentSchema.shape[name].meta() ?? {};
  return {
    description: String(description),
    accepts: String(accepts),
    isSecret: isSecret === true,
  };
}

function variable<T extends z.ZodType>(schema: T, meta: VariableMeta): T {
  return schema.meta({ ...meta });
}

function numberOf(range: { least: number; most: number; isWhole?: boolean }) {
  return z
    .string()
    .regex(range.isWhole === true ? /^[0-9]{1,9}$/ : /^[0-9]{1,9}(?:\.[0-9]{1,9})?$/)
    .transform(Number)
    .pipe(z.number().min(range.least).max(range.most));
}

function flag() {
  return z
    .enum(['0', '1'])
    .transform((text) => text === '1')
    .default(false);
}

function addressOf(faultOf: (text: string) => string | null) {
  return z.string().superRefine((text, context) => {
    const fault = faultOf(text);
    if (fault !== null) context.addIssue({ code: 'custom', message: fault });
  });
}
