import { defaultRules } from '../policy/rules.ts';
import type { ConfigurationDocument } from './document-schema.ts';

/** What the configuration file is merged over. */
export const defaultDocument = {
  ...defaultRules,
  bypass: { models: [], concurrency: 4 },
  leases: {
    text: {
      baseSeconds: 150,
      preparationSeconds: 30,
      coldLoadSeconds: 120,
      capTrustedSeconds: 600,
      capUntrustedSeconds: 200,
    },
    image: { defaultSeconds: 1800, capSeconds: 3600 },
    audio: { defaultSeconds: 1800, capSeconds: 3600 },
    video: { defaultSeconds: 1800, capSeconds: 3600 },
    unmeasuredTokensPerSecond: 10,
    stalePassSeconds: 60,
    restarts: 1,
  },
  durations: {
    text: { p50Seconds: 10, p90Seconds: 40 },
    image: { p50Seconds: 20, p90Seconds: 60 },
    audio: { p50Seconds: 15, p90Seconds: 60 },
    video: { p50Seconds: 240, p90Seconds: 480 },
    other: { p50Seconds: 30, p90Seconds: 120 },
    loadSeconds: { p50Seconds: 20, p90Seconds: 60 },
    models: {},
  },
  worker: { name: 'gpu-0', trusted: true, maintenanceAfterStaleAborts: null },
  caps: {
    waitingPerMember: 500,
    bytesPerMember: 4_294_967_296,
    waiting: 20_000,
    bodyBytes: 268_435_456,
  },
  idempotency: { graceSeconds: 60 },
  keepAlive: { afterSeconds: 20, everySeconds: 15, style: 'comments' },
  retention: {
    syncSeconds: 600,
    completedSeconds: 86_400,
    failedSeconds: 604_800,
    idempotencySeconds: 86_400,
    dispatchRecords: 10_000,
  },
  memory: { admitBelowFraction: 0.7 },
  keys: [],
} as const satisfies Readonly<Record<Exclude<keyof ConfigurationDocument, '$schema'>, unknown>>;
