import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { DockerfileParser } from 'dockerfile-ast';
import { parse } from 'yaml';
import { loadConfig } from '../../src/config/load.ts';

/** Variables as compose fills them in where the user's shell has none. */
const withDefaults = (value: string): string => value.replaceAll(/\$\{\w+:-([^}]*)\}/g, '$1');

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (name: string): string => readFileSync(root + name, 'utf8');

interface Service {
  image: string;
  build?: string;
  command: string[];
  restart: string;
  stop_grace_period?: string;
  ports?: string[];
  volumes: string[];
  environment?: Record<string, string>;
  depends_on?: Record<string, { condition: string }>;
  healthcheck: { test: string[]; interval: string; timeout: string; retries: number };
}
const compose = parse(read('docker-compose.yml'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, null>;
};
const services = Object.entries(compose.services);
const KNOWN_KEYS = new Set([
  ...['image', 'build', 'command', 'restart', 'ports', 'volumes', 'environment', 'depends_on'],
  ...['healthcheck', 'stop_grace_period', 'extra_hosts'],
]);

describe('docker-compose.yml', () => {
  test('has redis, ingress, worker and scorer', () => {
    expect(Object.keys(compose.services).toSorted()).toEqual(['gpu', 'ingress', 'redis', 'scorer']);
  });

  test.each(services)(
    '%s has only keys compose knows, a health check and a restart policy',
    (_name, service) => {
      expect(Object.keys(service).filter((key) => !KNOWN_KEYS.has(key))).toEqual([]);
      expect(service.restart).toBe('unless-stopped');
      expect(service.healthcheck.test[0]).toBe('CMD');
      expect(service.healthcheck.interval).toMatch(/^\d+s$/);
      expect(service.healthcheck.retries).toBeGreaterThan(0);
    },
  );

  test.each(services)('%s needs and mounts only what is declared', (_name, service) => {
    for (const other of Object.keys(service.depends_on ?? {})) {
      expect(compose.services[other]?.healthcheck).toBeDefined();
    }
    for (const volume of service.volumes) {
      expect(Object.keys(compose.volumes)).toContain(volume.split(':')[0]);
    }
  });

  test('publishes nothing but the ingress, and that on loopback alone', () => {
    const published = services.flatMap(([name, { ports }]) =>
      (ports ?? []).map((port) => `${name} ${port}`),
    );
    expect(published).toEqual(['ingress 127.0.0.1:8080:8080']);
  });

  test.each(services.filter(([name]) => name !== 'redis'))(
    '%s runs a file that the build makes',
    (_name, service) => {
      const source =
        service.command
          .at(-1)
          ?.replace(/^dist\//, '')
          .replace(/\.js$/, '.ts') ?? '';
      expect(existsSync(root + source)).toBe(true);
    },
  );

  test('Redis keeps what it is given, up to a limit that admission can see', () => {
    const command = compose.services.redis?.command.join(' ');
    expect(command).toContain('--appendonly yes');
    expect(command).toContain('--appendfsync always');
    expect(command).toContain('--maxmemory-policy noeviction');
    expect(command).toMatch(/--maxmemory \$\{REDIS_MAXMEMORY:-[1-9]\d*gb\}/);
  });

  test.each(services.filter(([name]) => name !== 'redis'))(
    '%s has an environment that Berth accepts, in its working folder and on the shared volume',
    (_name, service) => {
      const environment = Object.fromEntries(
        Object.entries(service.environment ?? {}).map(([name, value]) => [
          name,
          withDefaults(value),
        ]),
      );
      const config = loadConfig(environment);
      expect(config.redis.url).toBe('redis://redis:6379');
      expect(config.modelServer.url).toBe('http://host.docker.internal:9292');
      expect(service.volumes).toEqual([`data:${config.dataDir}`]);
      expect(config.sealingSecret).toBeNull();
    },
  );

  test.each([
    ['gpu', 'WORKER_PORT'],
    ['scorer', 'SCORER_PORT'],
    ['ingress', 'PORT'],
  ] as const)('the health check of %s asks the port it is given', (name, variable) => {
    const service = compose.services[name];
    const port = service?.environment?.[variable];
    expect(port).toMatch(/^\d+$/);
    expect(service?.healthcheck.test.join(' ')).toContain(`http://127.0.0.1:${port}/`);
  });

  test('a container has the whole grace and a second more to end in', () => {
    const { graceSeconds } = loadConfig({}).shutdown;
    for (const [name, service] of services) {
      if (name === 'redis') continue;
      expect(Number.parseInt(service.stop_grace_period ?? '0', 10)).toBeGreaterThan(
        graceSeconds + 1,
      );
    }
  });
});

describe('Dockerfile', () => {
  const file = DockerfileParser.parse(read('Dockerfile'));
  const instructions = file
    .getInstructions()
    .map((one) => [one.getKeyword(), one.getArgumentsContent() ?? ''] as const);
  const of = (keyword: string): string[] =>
    instructions.filter(([name]) => name === keyword).map(([, text]) => text);

  test('builds on the Node of .nvmrc, in two stages', () => {
    expect(of('FROM')).toHaveLength(2);
    for (const from of of('FROM')) expect(from).toContain(`node:${read('.nvmrc').trim()}`);
  });

  test('copies only what is there or what an earlier stage made', () => {
    const stages = file.getFROMs().map((from) => from.getBuildStage());
    const ignored = read('.dockerignore').trim().split('\n');
    for (const copy of file.getCOPYs()) {
      const sources = (copy.getArgumentsContent() ?? '').split(' ').slice(0, -1);
      const stage = copy.getFromFlag()?.getValue();
      if (stage === undefined || stage === null) {
        expect(sources.filter((source) => !existsSync(root + source))).toEqual([]);
        expect(sources.filter((source) => ignored.includes(source))).toEqual([]);
      } else {
        expect(stages).toContain(stage);
        expect(sources).toEqual(['/app/dist']);
      }
    }
    expect(of('RUN').some((run) => run.includes('scripts/build.mjs'))).toBe(true);
  });

  test('does not run as root and starts a file that the build makes', () => {
    expect(of('USER')).toEqual(['node']);
    const command = JSON.parse(of('CMD')[0] ?? '[]') as string[];
    expect(
      existsSync(root + (command.at(-1) ?? '').replace(/^dist\//, '').replace(/\.js$/, '.ts')),
    ).toBe(true);
  });
});
