import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from '@jest/globals';
import { DockerfileParser } from 'dockerfile-ast';
import { parse } from 'yaml';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (name: string): string => readFileSync(root + name, 'utf8');

interface Service {
  image: string;
  build?: string;
  command: string[];
  restart: string;
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

  test('Redis keeps what it is given', () => {
    const command = compose.services.redis?.command.join(' ');
    expect(command).toContain('--appendonly yes');
    expect(command).toContain('--maxmemory-policy noeviction');
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
    // The parser keeps `--from=` apart from the arguments; what comes from a stage has an absolute path.
    for (const copy of of('COPY')) {
      for (const source of copy.split(' ').slice(0, -1)) {
        const isThere = source.startsWith('/app/')
          ? source === '/app/dist'
          : existsSync(root + source);
        expect([source, isThere]).toEqual([source, true]);
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
