import { afterEach, expect, test } from '@jest/globals';
import type { PoolStatus } from '../../src/adapters/redis/pool-status.ts';
import type { FileBodyStore } from '../../src/adapters/storage/file-body-store.ts';
import { createTelemetry } from '../../src/adapters/telemetry/telemetry.ts';
import { loadConfig } from '../../src/config/load.ts';
import { AdmissionWatch } from '../../src/processes/admission-watch.ts';
import { eventually } from '../support/eventually.ts';

const MIB = 1024 * 1024;
const closers: (() => void)[] = [];
afterEach(() => closers.splice(0).forEach((close) => close()));

/** A watch over a healthy system whose disk has `disk.freeBytes` left. */
async function watchOver(disk: { freeBytes: number }): Promise<AdmissionWatch> {
  const telemetry = createTelemetry({
    process: 'ingress',
    config: loadConfig({ LOG_LEVEL: 'silent' }),
  });
  const status = {
    owner: async () => Promise.resolve({ name: 'gpu-0', pid: 1, host: 'here' }),
    scorerAgeMs: async () => Promise.resolve(0),
    storeMarker: async () => Promise.resolve('seen'),
    policyHash: async () => Promise.resolve('same'),
  } as unknown as PoolStatus;
  const store = {
    freeBytes: async () => Promise.resolve(disk.freeBytes),
    readMarker: async () => Promise.resolve('seen'),
  } as unknown as FileBodyStore;
  const health = {
    usedBytes: 1,
    maxBytes: 100,
    hasAof: true,
    mayEvict: false,
    policy: 'noeviction',
  };
  const watch = new AdmissionWatch({
    redis: { status: 'ready' },
    health: async () => Promise.resolve(health),
    status,
    store,
    telemetry,
    admitBelowFraction: 0.7,
    scorerIntervalSeconds: 1,
    policyHash: 'same',
  });
  closers.push(() => {
    watch.stop();
    telemetry.close();
  });
  await watch.start();
  return watch;
}

test('no job is taken below the disk’s low-water mark, and readyz says so, until there is room again', async () => {
  const disk = { freeBytes: 128 * MIB };
  const watch = await watchOver(disk);
  expect(watch.refusal()).toBeUndefined();
  disk.freeBytes = 128 * MIB - 1;
  await eventually(() => watch.refusal() === 'storage_full', { what: 'the refusal' });
  expect(watch.checks().find(({ name }) => name === 'disk')).toMatchObject({ ok: false });
  disk.freeBytes = 200 * MIB;
  await eventually(() => watch.refusal() === undefined, { what: 'jobs to be taken again' });
  expect(watch.checks().every(({ ok }) => ok)).toBe(true);
});
