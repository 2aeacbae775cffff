import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { text } from 'node:stream/consumers';
import { parseEnv } from 'node:util';
import { describe, expect, test } from '@jest/globals';
import { describeConfig } from '../../src/config/describe.ts';
import { generatedFiles, referencePage } from '../../src/config/generated-files.ts';
import { loadConfig } from '../../src/config/load.ts';
import { variableNames } from '../../src/config/read-environment.ts';

/** The defaults as they were agreed; a change here is a change for every operator. */
const agreedDefaults = `{
  "bands": { "batch": -100, "normal": 0, "interactive": 100 },
  "tiers": { "free": { "bonus": 0, "weight": 1 }, "pro": { "bonus": 1, "weight": 1.5 }, "max": { "bonus": 2, "weight": 2 } },
  "affinity": { "bonus": 10 },
  "aging": { "divisorSeconds": 60, "clock": "band", "charge": 50, "hold": { "seconds": 1, "share": 0.02 } },
  "intents": { "chat": "interactive", "image": "interactive", "video": "interactive", "skill": "normal",
               "film-shot": "batch", "scheduled": "batch", "standing-query": "batch" },
  "xPriorityUnit": 10,
  "modelFloors": {},
  "bypass": { "models": [], "concurrency": 4 },
  "asyncUpstreams": [
    { "path": "/comfyui/prompt", "load": "/comfyui/", "idPointer": "/prompt_id", "poll": "history/{id}", "donePointer": "/{id}", "errorPointer": "/{id}/status/status_str", "errorValue": "error", "pending": "queue",
      "cancel": [{ "path": "queue", "body": "{\\"delete\\":[\\"{id}\\"]}" }, { "path": "interrupt", "body": "{\\"prompt_id\\":\\"{id}\\"}" }], "pollSeconds": 1, "timeoutSeconds": 3600 },
    { "path": "/comfyui/api/prompt", "load": "/comfyui/", "idPointer": "/prompt_id", "poll": "history/{id}", "donePointer": "/{id}", "errorPointer": "/{id}/status/status_str", "errorValue": "error", "pending": "queue",
      "cancel": [{ "path": "queue", "body": "{\\"delete\\":[\\"{id}\\"]}" }, { "path": "interrupt", "body": "{\\"prompt_id\\":\\"{id}\\"}" }], "pollSeconds": 1, "timeoutSeconds": 3600 },
    { "path": "/upstream/*/prompt", "idPointer": "/prompt_id", "poll": "history/{id}", "donePointer": "/{id}", "errorPointer": "/{id}/status/status_str", "errorValue": "error", "pending": "queue",
      "cancel": [{ "path": "queue", "body": "{\\"delete\\":[\\"{id}\\"]}" }, { "path": "interrupt", "body": "{\\"prompt_id\\":\\"{id}\\"}" }], "pollSeconds": 1, "timeoutSeconds": 3600 }],
  "attempts": { "most": 5, "firstBackoffSeconds": 0.5, "longestBackoffSeconds": 10 },
  "leases": {
    "text": { "baseSeconds": 150, "preparationSeconds": 30, "coldLoadSeconds": 120, "capTrustedSeconds": 600, "capUntrustedSeconds": 200 },
    "image": { "defaultSeconds": 1800, "capSeconds": 3600 }, "audio": { "defaultSeconds": 1800, "capSeconds": 3600 },
    "video": { "defaultSeconds": 1800, "capSeconds": 3600 },
    "unmeasuredTokensPerSecond": 10, "stalePassSeconds": 60, "restarts": 1 },
  "durations": {
    "text": { "p50Seconds": 10, "p90Seconds": 40 }, "image": { "p50Seconds": 20, "p90Seconds": 60 },
    "audio": { "p50Seconds": 15, "p90Seconds": 60 }, "video": { "p50Seconds": 240, "p90Seconds": 480 },
    "other": { "p50Seconds": 30, "p90Seconds": 120 }, "loadSeconds": { "p50Seconds": 20, "p90Seconds": 60 }, "models": {} },
  "worker": { "name": "gpu-0", "trusted": true, "maintenanceAfterStaleAborts": null },
  "caps": { "waitingPerMember": 500, "bytesPerMember": 4294967296, "waiting": 20000, "bodyBytes": 268435456 },
  "idempotency": { "graceSeconds": 60 },
  "keepAlive": { "afterSeconds": 20, "everySeconds": 15, "style": "comments" },
  "retention": { "syncSeconds": 600, "completedSeconds": 86400, "failedSeconds": 604800, "idempotencySeconds": 86400, "dispatchRecords": 10000 },
  "memory": { "admitBelowFraction": 0.7 },
  "keys": []
}`;

describe('the files that repeat the schemas', () => {
  const page = readFileSync(referencePage, 'utf8');

  test.each([...generatedFiles(page)])(
    '%s is as generated (else: npm run config -- --write)',
    (path, generated) => {
      expect(readFileSync(path, 'utf8')).toBe(generated);
    },
  );

  test('the example file holds the agreed defaults in the agreed order and loads', () => {
    const example = JSON.parse(readFileSync('berth.config.example.json', 'utf8')) as object;
    const { $schema, ...rest } = example as Record<string, unknown>;
    expect($schema).toBe('./berth.config.schema.json');
    expect(JSON.stringify(rest)).toBe(JSON.stringify(JSON.parse(agreedDefaults)));
    const config = loadConfig({ BERTH_CONFIG: 'berth.config.example.json' });
    expect(config.rules).toEqual(loadConfig({}).rules);
    expect(config.leases).toEqual(loadConfig({}).leases);
  });

  test('.env.example names every variable, with its default', () => {
    const example = parseEnv(readFileSync('.env.example', 'utf8'));
    expect(Object.keys(example).sort()).toEqual([...variableNames].sort());
    expect(loadConfig(example)).toEqual(loadConfig({}));
  });

  test('the reference names every variable and every setting', () => {
    const named = new Set([...page.matchAll(/^\| `([^`]+)` \|/gm)].map((match) => match[1]));
    for (const name of variableNames) expect(named).toContain(name);
    for (const path of leaves(JSON.parse(agreedDefaults) as object)) expect(named).toContain(path);
  });

  test('the JSON Schema knows every setting, and neither requires one nor lets a stranger pass', () => {
    const schema = JSON.parse(readFileSync('berth.config.schema.json', 'utf8')) as Schema;
    for (const path of leaves(JSON.parse(agreedDefaults) as object)) {
      const found = path
        .split('.')
        .reduce<Schema | undefined>((at, key) => at?.properties?.[key], schema);
      expect({ path, description: found?.description }).toEqual({
        path,
        description: expect.any(String),
      });
    }
    expect(schema.required).toBeUndefined();
    expect(schema.additionalProperties).toBe(false);
  });
});

describe('npm run config', () => {
  const secrets = {
    MODEL_SERVER_API_KEY: 'canary-key',
    BERTH_SECRET: 'canary-secret-of-some-length',
    REDIS_URL: 'redis://canary-user:canary-password@redis:6379/1?canary=1',
    OTEL_EXPORTER_OTLP_ENDPOINT: 'https://canary:canary@collector/v1?token=canary',
  };

  test('prints the effective configuration as JSON without a secret', async () => {
    const { code, stdout } = await print({ ...secrets, PORT: '9999' });
    expect(code).toBe(0);
    expect(stdout).not.toContain('canary');
    const printed = JSON.parse(stdout) as ReturnType<typeof describeConfig>;
    expect(printed.environment).toMatchObject({
      PORT: 9999,
      REDIS_URL: 'redis://[hidden]@redis:6379/1?[hidden]',
    });
    expect(printed.configuration).toMatchObject({ keys: [], affinity: { bonus: 10 } });
  });

  test('prints the faults alone and exits with 1', async () => {
    const { code, stdout, stderr } = await print({ PORT: 'x', LOG_LEVEL: 'x' });
    expect(code).toBe(1);
    expect(stdout).toBe('');
    expect(stderr).toMatch(
      /^berth: configuration: PORT: .*\nberth: configuration: LOG_LEVEL: .*\n$/,
    );
  });

  test('exits with 2 when a supervisor listens', async () => {
    const { code } = await print({ PORT: 'x' }, true);
    expect(code).toBe(2);
  });

  test('hides the hash of every key', () => {
    const hash = 'ab'.repeat(32);
    const config = loadConfig({});
    const document = { ...config.source.document, keys: [{ name: 'ann', sha256: hash }] };
    const shown = describeConfig({ ...config, source: { ...config.source, document } });
    expect(JSON.stringify(shown)).toContain('ann');
    expect(JSON.stringify(shown)).not.toContain(hash);
  });
});

interface Schema {
  description?: string;
  required?: string[];
  additionalProperties?: unknown;
  properties?: Record<string, Schema>;
}

/** Paths of the settings below a document; a table of named entries counts as one. */
function leaves(document: object, path: readonly string[] = []): string[] {
  return Object.entries(document).flatMap(([key, value]: [string, unknown]) => {
    const here = [...path, key];
    const isTable = ['bands', 'tiers', 'intents', 'modelFloors'].includes(here.join('.'));
    return typeof value === 'object' && value !== null && !Array.isArray(value) && !isTable
      ? leaves(value, here)
      : [here.join('.')];
  });
}

async function print(env: NodeJS.ProcessEnv, isSupervised = false) {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/config/print.ts'], {
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...(isSupervised ? (['ipc'] as const) : [])],
  });
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout!),
    text(child.stderr!),
    once(child, 'exit') as Promise<[number]>,
  ]);
  return { code, stdout, stderr };
}
