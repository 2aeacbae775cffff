import { defaultRules } from '../policy/rules.ts';
import type { ConfigurationDocument } from './document-schema.ts';

/** ComfyUI: a prompt is answered at once, its history entry stands for its end, its queue names what is to come. */
const comfyUi = {
  idPointer: '/prompt_id',
  poll: 'history/{id}',
  donePointer: '/{id}',
  errorPointer: '/{id}/status/status_str',
  errorValue: 'error',
  pending: 'queue',
  cancel: [
    { path: 'queue', body: '{"delete":["{id}"]}' },
    { path: 'interrupt', body: '{"prompt_id":"{id}"}' },
  ],
  pollSeconds: 1,
  timeoutSeconds: 3600,
} as const;

/** What the configuration file is merged over. */
export const defaultDocument = {
  ...defaultRules,
  bypass: { models: [], concurrency: 4 },
  asyncUpstreams: [
    { path: '/comfyui/prompt', load: '/comfyui/', ...comfyUi },
    { path: '/comfyui/api/prompt', load: '/comfyui/', ...comfyUi },
    { path: '/upstream/*/prompt', ...comfyUi },
  ],
  attempts: { most: 5, firstBackoffSeconds: 0.5, longestBackoffSeconds: 10 },
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
