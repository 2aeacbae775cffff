import { resolve } from 'node:path';
import { describe, expect, test } from '@jest/globals';
import { ConfigurationError } from '../../src/config/configuration-error.ts';
import { loadConfig } from '../../src/config/load.ts';

describe('the environment', () => {
  test('has the documented defaults when nothing is set', () => {
    const config = loadConfig({});
    expect(config.http).toEqual({
      host: '127.0.0.1',
      port: 8080,
      trustProxyHops: 0,
      isOpenAllowed: false,
    });
    expect(config.redis).toEqual({ url: null, fsync: 'always' });
    expect(config.modelServer).toEqual({ url: null, apiKey: null });
    expect(config.dataDir).toBe(resolve('data'));
    expect(config.pool).toBe('gpu');
    expect(config.sealingSecret).toBeNull();
    expect(config.scorer).toEqual({ intervalSeconds: 15, port: null });
    expect(config.worker.port).toBeNull();
    expect(config.shutdown.graceSeconds).toBe(8);
    expect(config.webhooks.mayCallPrivate).toBe(false);
    expect(config.tracing.otlpEndpoint).toBeNull();
    expect(config.log.level).toBe('info');
    expect(config.keys).toEqual([]);
  });

  test('takes an empty or blank variable for an unset one', () => {
    expect(loadConfig({ PORT: '', REDIS_URL: '  ', BERTH_CONFIG: '' }).http.port).toBe(8080);
  });

  test('reads each variable', () => {
    const config = loadConfig({
      HOST: '0.0.0.0',
      PORT: '0',
      POOL: 'gpu-2',
      MODEL_SERVER_URL: 'https://models.example:8443/swap/',
      MODEL_SERVER_API_KEY: 'sk-1',
      REDIS_URL: 'unix:///run/redis.sock',
      REDIS_FSYNC: 'everysec',
      DATA_DIR: '/var/lib/berth',
      BERTH_SECRET: 'sixteen letters!',
      BERTH_ALLOW_OPEN: '1',
      TRUST_PROXY: '2',
      SCORER_INTERVAL_SECONDS: '0.5',
      SHUTDOWN_GRACE_SECONDS: '30',
      WORKER_PORT: '9101',
      SCORER_PORT: '0',
      WEBHOOK_ALLOW_PRIVATE: '1',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318',
      LOG_LEVEL: 'debug',
    });
    expect(config).toMatchObject({
      pool: 'gpu-2',
      http: { host: '0.0.0.0', port: 0, trustProxyHops: 2, isOpenAllowed: true },
      modelServer: { url: 'https://models.example:8443/swap', apiKey: 'sk-1' },
      redis: { url: 'unix:///run/redis.sock', fsync: 'everysec' },
      dataDir: '/var/lib/berth',
      sealingSecret: 'sixteen letters!',
      scorer: { intervalSeconds: 0.5, port: 0 },
      worker: { port: 9101 },
      shutdown: { graceSeconds: 30 },
      webhooks: { mayCallPrivate: true },
      tracing: { otlpEndpoint: 'http://collector:4318' },
      log: { level: 'debug' },
    });
  });

  test.each([
    ['PORT', '65536'],
    ['PORT', '80a'],
    ['PORT', '-1'],
    ['PORT', '1e3'],
    ['POOL', 'GPU'],
    ['POOL', 'a'.repeat(33)],
    ['HOST', 'http://x'],
    ['REDIS_FSYNC', 'never'],
    ['BERTH_ALLOW_OPEN', 'yes'],
    ['TRUST_PROXY', '17'],
    ['SCORER_INTERVAL_SECONDS', '0'],
    ['SHUTDOWN_GRACE_SECONDS', '3601'],
    ['LOG_LEVEL', 'loud'],
    ['MODEL_SERVER_URL', 'models:9292'],
    ['MODEL_SERVER_URL', 'ftp://models'],
    ['MODEL_SERVER_URL', 'http://models/?a=1'],
    ['MODEL_SERVER_URL', 'http://models/#a'],
    ['MODEL_SERVER_URL', 'http://user:pass@models'],
    ['MODEL_SERVER_URL', 'http://models:6000'],
    ['MODEL_SERVER_URL', 'http://models:10080/v1'],
    ['REDIS_URL', 'http://redis'],
    ['REDIS_URL', 'localhost:6379'],
    ['REDIS_URL', 'redis://redis/zero'],
    ['REDIS_URL', 'unix://redis.sock'],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector'],
    ['BERTH_SECRET', 'too short'],
    ['MODEL_SERVER_API_KEY', 'two words'],
  ])('refuses %s=%s by name', (name, value) => {
    const lines = faultsOf({ [name]: value });
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`^${name}: `));
  });

  test.each(['redis://redis:6379/2', 'rediss://user:pass@redis', 'unix:///run/redis.sock'])(
    'takes %s for a Redis',
    (url) => {
      expect(loadConfig({ REDIS_URL: url }).redis.url).toBe(url);
    },
  );

  test('names a refused port of the model server with its number', () => {
    expect(faultsOf({ MODEL_SERVER_URL: 'http://models:6000' })[0]).toContain('6000');
  });

  test('never repeats a value that may hold a secret', () => {
    const text = faultsOf({
      MODEL_SERVER_API_KEY: 'canary one',
      BERTH_SECRET: 'canary-two',
      REDIS_URL: 'redis://:canary-three@redis/x',
      MODEL_SERVER_URL: 'http://u:canary-four@models',
    }).join('\n');
    expect(text.split('\n')).toHaveLength(4);
    expect(text).not.toContain('canary');
  });

  test('reports every fault of environment and file together', () => {
    const paths = faultsOf({ PORT: 'x', LOG_LEVEL: 'x', BERTH_CONFIG: '/nowhere/berth.json' }).map(
      (line) => line.split(':')[0],
    );
    expect(paths).toEqual(['PORT', 'LOG_LEVEL', 'BERTH_CONFIG']);
  });

  test('refuses to serve other machines without keys unless that is allowed', () => {
    expect(faultsOf({ HOST: '0.0.0.0' })[0]).toMatch(/^HOST: 0\.0\.0\.0 .*BERTH_ALLOW_OPEN=1/);
    expect(loadConfig({ HOST: '0.0.0.0', BERTH_ALLOW_OPEN: '1' }).http.host).toBe('0.0.0.0');
    for (const host of ['localhost', '127.0.0.2', '::1']) {
      expect(loadConfig({ HOST: host }).http.host).toBe(host);
    }
  });

  test('cannot be changed once loaded', () => {
    const config = loadConfig({});
    expect(() => Object.assign(config.rules.bands, { batch: 0 })).toThrow(TypeError);
    expect(() => Object.assign(config.http, { port: 1 })).toThrow(TypeError);
    expect(() => (config.bypass.models as string[]).push('x')).toThrow(TypeError);
  });
});

function faultsOf(env: NodeJS.ProcessEnv): readonly string[] {
  try {
    loadConfig(env);
  } catch (error) {
    if (error instanceof ConfigurationError) return error.lines;
    throw error;
  }
  return [];
}
