import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { ConfigurationError } from '../../src/config/configuration-error.ts';
import { defaultDocument } from '../../src/config/default-document.ts';
import { findJsonFault } from '../../src/config/json-syntax.ts';
import { loadConfig, type BerthConfig } from '../../src/config/load.ts';
import { mergeDocument } from '../../src/config/merge-document.ts';
import { policyHash } from '../../src/config/policy-hash.ts';

const folder = mkdtempSync(join(tmpdir(), 'berth-config-'));
const path = join(folder, 'berth.config.json');
afterAll(() => rmSync(folder, { recursive: true }));

const sha = (text: string) => createHash('sha256').update(text).digest('hex');

describe('the configuration file', () => {
  test('changes only what it names', () => {
    const config = load({
      bands: { urgent: 300 },
      tiers: { pro: { weight: 3 } },
      leases: { image: { defaultSeconds: 60 } },
      bypass: { models: ['embed'] },
    });
    expect(config.rules.bands).toEqual({ batch: -100, normal: 0, interactive: 100, urgent: 300 });
    expect(config.rules.tiers.pro).toEqual({ bonus: 1, weight: 3 });
    expect(config.leases.image).toEqual({ defaultSeconds: 60, capSeconds: 3600 });
    expect(config.bypass).toEqual({ models: ['embed'], concurrency: 4 });
    expect(config.leases.text).toEqual(defaultDocument.leases.text);
  });

  test('sets what is assumed of durations, also for single models, and not the policy', () => {
    const guess = { p50Seconds: 300, p90Seconds: 900 };
    const config = load({ durations: { video: guess, models: { 'org/film:q4': guess } } });
    expect(config.durations).toEqual({
      ...defaultDocument.durations,
      video: guess,
      models: { 'org/film:q4': guess },
    });
    expect(policyHash(config)).toBe(policyHash(loadConfig({})));
    expect(
      faults({
        durations: { text: { p50Seconds: 50 }, models: { m: { ...guess, p90Seconds: 1 } } },
      }),
    ).toEqual([
      'durations.text.p50Seconds: 50 is above durations.text.p90Seconds, which is 40',
      'durations.models.m.p50Seconds: 300 is above durations.models.m.p90Seconds, which is 1',
    ]);
  });

  test('removes an entry with null', () => {
    const config = load({
      intents: { 'standing-query': null },
      tiers: { max: null },
      worker: { maintenanceAfterStaleAborts: null },
    });
    expect(config.rules.intents).not.toHaveProperty('standing-query');
    expect(Object.keys(config.rules.tiers)).toEqual(['free', 'pro']);
    expect(config.worker.maintenanceAfterStaleAborts).toBeNull();
  });

  test('cannot remove a setting that Berth needs', () => {
    expect(faults({ caps: { waiting: null }, affinity: null })).toEqual([
      expect.stringMatching(/^affinity: .*null/),
      expect.stringMatching(/^caps\.waiting: .*null/),
    ]);
  });

  test('is refused for every unknown key, with its path', () => {
    const lines = faults({
      bnads: {},
      leases: { text: { baseSecnds: 1 } },
      tiers: { pro: { wieght: 2 } },
      keys: [{ name: 'a', sha256: sha('a'), teir: 'pro' }],
    });
    expect([...lines].sort()).toEqual([
      'bnads: unknown key',
      'keys.0.teir: unknown key',
      'leases.text.baseSecnds: unknown key',
      'tiers.pro.wieght: unknown key',
    ]);
  });

  test('has no entry called __proto__, wherever it stands', () => {
    expect(
      faultsOfText('{"__proto__": {"a": 1}, "modelFloors": {"__proto__": 5}, "keys": []}').map(
        (line) => line.split(': ')[0],
      ),
    ).toEqual(['__proto__', 'modelFloors.__proto__']);
    expect({}).not.toHaveProperty('a');
  });

  test('may hold $schema', () => {
    expect(load({ $schema: './berth.config.schema.json' }).rules).toEqual(loadConfig({}).rules);
  });

  test('names a wrong type and a range with the value found', () => {
    expect(
      faults({
        caps: { waiting: '20000' },
        memory: { admitBelowFraction: 1.5 },
        keepAlive: { style: 'loud' },
        worker: { name: 'gpu 0' },
        bands: 3,
      }),
    ).toEqual([
      'bands: 3 will not do: an object is needed',
      expect.stringMatching(/^worker\.name: "gpu 0" /),
      'caps.waiting: "20000" will not do: a number is needed',
      'keepAlive.style: "loud" will not do: off or comments or reasoning is needed',
      'memory.admitBelowFraction: 1.5 will not do: a number of at most 1 is needed',
    ]);
  });

  test.each([
    ['{"a": 1,}', 'line 1, column 9'],
    ['{\n  "bands": {\n    "batch": -100\n    "normal": 0\n  }\n}', 'line 4, column 5'],
    ['{"a": canary}', 'line 1, column 7'],
    ['{"a": 1', 'line 1, column 8'],
    ['', 'line 1, column 1'],
    ['{} {}', 'line 1, column 4'],
  ])('that is no JSON (%j) is refused with the place', (text, place) => {
    const lines = faultsOfText(text);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain(place);
    expect(lines[0]).not.toContain('canary');
  });

  test('that is not an object, is missing or is a folder is refused in one line', () => {
    expect(faultsOfText('[]')[0]).toMatch(/^BERTH_CONFIG: .* holds no object$/);
    expect(faultsOfEnv({ BERTH_CONFIG: join(folder, 'none.json') })[0]).toContain(
      'there is no such file',
    );
    expect(faultsOfEnv({ BERTH_CONFIG: folder })[0]).toContain('it is a folder');
  });

  test('may start with a byte order mark', () => {
    writeFileSync(path, '\uFEFF{"xPriorityUnit": 20}');
    expect(loadConfig({ BERTH_CONFIG: path }).rules.xPriorityUnit).toBe(20);
  });
});

describe('the invariants', () => {
  test('bands no further apart than the largest bonus are refused with the numbers', () => {
    const [line, ...others] = faults({ bands: { batch: -12 } });
    expect(others).toEqual([]);
    expect(line).toMatch(/batch.*-12.*normal.*0.*12/);
    expect(load({ bands: { batch: -13 } }).rules.bands.batch).toBe(-13);
  });

  test('two bands at one value are refused', () => {
    expect(faults({ bands: { normal: 100 } })[0]).toMatch(/^bands: .*normal.*interactive.*100/);
  });

  test('a weight, a divisor and a charge that are too small are refused together with the bands', () => {
    const lines = faults({
      bands: { batch: -5 },
      tiers: { free: { weight: 0 } },
      aging: { divisorSeconds: 0, charge: 3 },
    });
    expect(lines).toEqual([
      expect.stringMatching(/^tiers\.free\.weight: 0 .*above 0/),
      expect.stringMatching(/^aging\.divisorSeconds: 0 /),
      expect.stringMatching(/^bands: .*batch.*-5/),
      expect.stringMatching(/^aging: aging\.charge is 3: .*above 3/),
    ]);
  });

  test('an intent without its band is refused', () => {
    expect(faults({ intents: { film: 'slow' } })).toEqual([
      expect.stringMatching(/^intents: intents\.film is slow/),
    ]);
  });

  test('a first backoff above the longest is refused with both numbers', () => {
    expect(faults({ attempts: { firstBackoffSeconds: 20 } })).toEqual([
      'attempts.firstBackoffSeconds: 20 is above attempts.longestBackoffSeconds, which is 10',
    ]);
  });

  test('leases that exceed their caps are refused with both numbers', () => {
    expect(
      faults({ leases: { text: { baseSeconds: 300 }, video: { defaultSeconds: 4000 } } }),
    ).toEqual([
      'leases.text.baseSeconds: 300 is above leases.text.capUntrustedSeconds, which is 200',
      'leases.video.defaultSeconds: 4000 is above leases.video.capSeconds, which is 3600',
    ]);
  });

  test('a malformed hash is refused without being repeated', () => {
    const lines = faults({
      keys: [
        { name: 'a', sha256: sha('a').toUpperCase() },
        { name: 'b', sha256: 'canary' },
        { name: 'c' },
      ],
    });
    expect(lines.map((line) => line.split(': ')[0])).toEqual([
      'keys.0.sha256',
      'keys.1.sha256',
      'keys.2.sha256',
    ]);
    expect(lines.join()).not.toMatch(/canary|978112/i);
  });

  test('two keys with one name or one hash, an unknown tier and a default above the ceiling are refused', () => {
    const lines = faults({
      keys: [
        { name: 'a', sha256: sha('a') },
        { name: 'a', sha256: sha('a'), tier: 'gold' },
        { name: 'b', sha256: sha('b'), defaultPriority: 101 },
        { name: 'c', sha256: sha('c'), defaultPriority: 6, maxPriority: 5 },
      ],
    });
    expect(lines).toEqual([
      'keys.1.name: keys.0 has the same name',
      'keys.1.sha256: keys.0 is the same key',
      'keys.1.tier: no tier is called gold',
      'keys.2.defaultPriority: 101 is above its maxPriority, which is 100',
      'keys.3.defaultPriority: 6 is above its maxPriority, which is 5',
    ]);
  });
});

describe('a key', () => {
  test('gets what it leaves out', () => {
    expect(load({ keys: [{ name: 'ann', sha256: sha('ann') }] }).keys).toEqual([
      {
        name: 'ann',
        sha256: sha('ann'),
        member: 'ann',
        tier: 'free',
        defaultPriority: 0,
        maxPriority: 100,
        mayAssert: [],
        isAdmin: false,
        waitingPerMember: null,
        bytesPerMember: null,
      },
    ]);
  });

  test('has no ceiling when it is trusted or says null, unless it names one', () => {
    const config = load({
      keys: [
        { name: 'asserts', sha256: sha('1'), mayAssert: ['member'] },
        { name: 'admin', sha256: sha('2'), admin: true },
        { name: 'free', sha256: sha('3'), maxPriority: null },
        { name: 'bound', sha256: sha('4'), admin: true, maxPriority: 50 },
      ],
    });
    expect(config.keys.map((key) => key.maxPriority)).toEqual([null, null, null, 50]);
  });

  test('lets Berth serve other machines', () => {
    writeFileSync(path, JSON.stringify({ keys: [{ name: 'ann', sha256: sha('ann') }] }));
    expect(loadConfig({ BERTH_CONFIG: path, HOST: '0.0.0.0' }).http.host).toBe('0.0.0.0');
  });
});

describe('the policy hash', () => {
  test('is the same for the same rules however they are written', () => {
    const one = load({ bands: { a: 300, b: 400 }, tiers: { pro: { bonus: 2, weight: 1 } } });
    const other = load({ tiers: { pro: { weight: 1, bonus: 2 } }, bands: { b: 400, a: 300 } });
    expect(policyHash(one)).toBe(policyHash(other));
    expect(policyHash(one)).toMatch(/^[0-9a-f]{64}$/);
  });

  test('changes with any rule and with nothing else', () => {
    const plain = policyHash(load({}));
    expect(policyHash(load({ aging: { hold: { share: 0.03 } } }))).not.toBe(plain);
    expect(policyHash(load({ modelFloors: { m: 1 } }))).not.toBe(plain);
    expect(policyHash(load({ caps: { waiting: 5 }, leases: { restarts: 0 } }))).toBe(plain);
  });
});

describe('the merge', () => {
  test('changes neither document and is at rest when laid twice', () => {
    const json = fc.jsonValue({ maxDepth: 3 }).filter((value) => isPlainObject(value));
    fc.assert(
      fc.property(json, json, (defaults, over) => {
        const before = JSON.stringify([defaults, over]);
        const once = mergeDocument(defaults as object as never, over as object as never);
        expect(mergeDocument(once, over as object as never)).toEqual(once);
        expect(JSON.stringify([defaults, over])).toBe(before);
      }),
    );
  });
});

describe('the JSON check', () => {
  test('agrees with JSON.parse on any text', () => {
    const nearJson = fc
      .tuple(fc.json(), fc.nat(), fc.constantFrom('', ',', '}', '"', 'x', ' ', '\n', '\\', '0'))
      .map(([text, at, extra]) => {
        const cut = at % (text.length + 1);
        return text.slice(0, cut) + extra + text.slice(cut + (at % 2));
      });
    fc.assert(
      fc.property(fc.oneof(nearJson, fc.json(), fc.string()), (text) => {
        expect(findJsonFault(text) === null).toBe(isJson(text));
      }),
      { numRuns: 2000 },
    );
  });
});

function load(document: object): BerthConfig {
  writeFileSync(path, JSON.stringify(document));
  return loadConfig({ BERTH_CONFIG: path });
}

function faults(document: object): readonly string[] {
  return faultsOfText(JSON.stringify(document));
}

function faultsOfText(text: string): readonly string[] {
  writeFileSync(path, text);
  return faultsOfEnv({ BERTH_CONFIG: path });
}

function faultsOfEnv(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.lines;
    throw error;
  }
  return [];
}

function isPlainObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
