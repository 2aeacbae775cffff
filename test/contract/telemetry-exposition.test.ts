import { afterAll, beforeAll, describe, expect, test } from '@jest/globals';
import { loadConfig } from '../../src/config/load.ts';
import {
  expositionContentType,
  mergeRegistries,
} from '../../src/adapters/telemetry/merge-registries.ts';
import { createTelemetry, type ProcessTelemetry } from '../../src/adapters/telemetry/telemetry.ts';

const config = loadConfig({ LOG_LEVEL: 'silent' });
const settled = {
  jobId: 'j-1',
  memberId: 'ann',
  band: 'batch',
  model: 'llama',
  kind: 'image',
  outcome: 'completed',
  ranMs: 3000,
  waitedMs: 5,
} as const;

describe('the merged exposition', () => {
  let first: ProcessTelemetry;
  let second: ProcessTelemetry;
  let gpu: ProcessTelemetry;
  let scorer: ProcessTelemetry;
  let text: string;

  beforeAll(async () => {
    first = createTelemetry({ process: 'ingress', config });
    second = createTelemetry({ process: 'ingress', config });
    gpu = createTelemetry({ process: 'gpu', config });
    scorer = createTelemetry({ process: 'scorer', config });
    first.jobRejected({ code: 'queue_full' });
    second.jobRejected({ code: 'queue_full' });
    first.jobSettled({ ...settled, outcome: 'evicted' });
    gpu.jobSettled(settled);
    first.scorerAged({ ageMs: 3000 });
    second.scorerAged({ ageMs: 4000 });
    gpu.modelsListed({ modelIds: ['odd "name"\\\n', 'llama'] });
    gpu.jobSettled({ ...settled, model: 'odd "name"\\\n' });
    gpu.jobSettled({ ...settled, ranMs: 90_000_000 });
    text = await mergeRegistries([
      { process: 'ingress', json: await first.exportRegistry() },
      { process: 'ingress', json: await second.exportRegistry() },
      { process: 'gpu', json: await gpu.exportRegistry() },
      { process: 'scorer', json: await scorer.exportRegistry() },
    ]);
  });
  afterAll(() => [first, second, gpu, scorer].forEach((each) => each.close()));

  test('is sound Prometheus text', () => {
    expect(exposition(text).length).toBeGreaterThan(200);
  });

  test('adds equal series of two processes of one kind', () => {
    expect(value(text, 'berth_rejections_total', { code: 'queue_full', process: 'ingress' })).toBe(
      2,
    );
  });

  test('keeps processes of different kinds apart', () => {
    const of = (process: string, outcome: string) =>
      value(text, 'berth_jobs_total', { band: 'batch', outcome, process });
    expect([of('ingress', 'evicted'), of('gpu', 'evicted')]).toEqual([1, 0]);
    expect([of('ingress', 'completed'), of('gpu', 'completed')]).toEqual([0, 3]);
  });

  test('shows the greater of two states', () => {
    expect(value(text, 'berth_scorer_age_seconds', { process: 'ingress' })).toBe(4);
  });

  test('escapes what a model id holds', () => {
    const labels = { model: 'odd "name"\\\n', kind: 'image', process: 'gpu' };
    expect(value(text, 'berth_run_seconds_count', labels)).toBe(1);
  });

  test('leaves out a part that cannot be read, and series without a number', async () => {
    const json = JSON.stringify([
      null,
      { name: 'berth_odd' },
      {
        name: 'berth_some',
        help: 'Some.',
        type: 'gauge',
        aggregator: 'sum',
        values: [
          { value: null, labels: { a: '1' } },
          { value: 2, labels: { a: '2' } },
        ],
      },
    ]);
    const merged = await mergeRegistries([
      { process: 'gpu', json: '{"half": ' },
      { process: 'gpu', json: 'null' },
      { process: 'scorer', json },
    ]);
    expect(exposition(merged)).toEqual([
      { name: 'berth_some', labels: { a: '2', process: 'scorer' }, value: 2 },
    ]);
  });

  test('is empty text when no process has told anything', async () => {
    expect((await mergeRegistries([])).trim()).toBe('');
  });

  test('has the content type of the text format', () => {
    expect(expositionContentType).toBe('text/plain; version=0.0.4; charset=utf-8');
  });

  test('of one process alone has the same labels', async () => {
    expect(value(await gpu.exposition(), 'berth_swaps_total', { process: 'gpu' })).toBe(0);
  });
});

interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
}

function value(text: string, name: string, labels: Record<string, string>): number | undefined {
  const wanted = key({ name, labels, value: 0 });
  return exposition(text).find((sample) => key(sample) === wanted)?.value;
}

/** Reads the text format strictly; throws at the first thing a scraper would refuse or misread. */
function exposition(text: string): Sample[] {
  if (text.trim() !== '' && !text.endsWith('\n')) throw new Error('the last line does not end');
  const samples: Sample[] = [];
  const types = new Map<string, string>();
  const seen = new Set<string>();
  let family = '';
  for (const line of text.split('\n').filter((each) => each !== '')) {
    const head = /^# (HELP|TYPE) ([a-z_]+) (.+)$/.exec(line);
    if (head !== null) {
      const [, what, name = '', rest = ''] = head;
      if (what === 'TYPE') types.set(name, rest);
      else if (types.has(name)) throw new Error(`${name} has two families`);
      family = name;
      continue;
    }
    const sample = readSample(line);
    const suffixes = /histogram|summary/.test(types.get(family) ?? '')
      ? '(_bucket|_sum|_count)?'
      : '';
    if (!new RegExp(`^${family}${suffixes}$`).test(sample.name)) {
      throw new Error(`${sample.name} stands in the family ${family}`);
    }
    if (!types.has(family)) throw new Error(`${family} has no type`);
    if (types.get(family) === 'counter' && !family.endsWith('_total')) {
      throw new Error(`the counter ${family} does not end in _total`);
    }
    if (seen.has(key(sample))) throw new Error(`${line} is there twice`);
    seen.add(key(sample));
    samples.push(sample);
  }
  checkHistograms(samples);
  return samples;
}

function readSample(line: string): Sample {
  const match = /^([a-z_]+)\{((?:[a-z_]+="(?:[^"\\]|\\["\\n])*",?)*)\} (\S+)$/.exec(line);
  if (match === null) throw new Error(`no sample: ${line}`);
  const [, name = '', labelText = '', number = ''] = match;
  if (!Number.isFinite(Number(number))) throw new Error(`no number: ${line}`);
  const labels = [...labelText.matchAll(/([a-z_]+)="((?:[^"\\]|\\["\\n])*)"/g)].map((each) => [
    each[1],
    (each[2] ?? '').replace(/\\(.)/g, (_, letter: string) => (letter === 'n' ? '\n' : letter)),
  ]);
  return {
    name,
    labels: Object.fromEntries(labels) as Record<string, string>,
    value: Number(number),
  };
}

function checkHistograms(samples: readonly Sample[]): void {
  const counts = new Map<string, number>();
  for (const { name, labels, value: count } of samples) {
    if (!name.endsWith('_bucket')) continue;
    const { le, ...rest } = labels;
    const of = key({ name: name.replace(/_bucket$/, '_count'), labels: rest, value: 0 });
    if (count < (counts.get(of) ?? 0)) throw new Error(`${of} falls at ${le ?? ''}`);
    counts.set(of, count);
  }
  for (const [of, highest] of counts) {
    const total = samples.find((sample) => key(sample) === of)?.value;
    if (total !== highest) throw new Error(`${of} is not its +Inf bucket`);
  }
}

function key({ name, labels }: Sample): string {
  return name + JSON.stringify(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1)));
}
