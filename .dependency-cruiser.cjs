/** Who may import whom: policy <- ports <- gateway <- { adapters, ingress } <- entry points. */
const only = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

module.exports = {
  forbidden: [
    only('no-cycles', 'cycles hide the direction of dependency', {}, { circular: true }),
    only(
      'policy-is-pure',
      'policy imports only policy',
      { path: '^src/policy/' },
      { pathNot: '^src/policy/' },
    ),
    only(
      'ports-know-policy-only',
      'ports are interfaces over policy types',
      { path: '^src/ports/' },
      { pathNot: ['^src/ports/', '^src/policy/', '^src/errors'] },
    ),
    only(
      'gateway-has-no-adapters',
      'use cases ask policy and call ports',
      { path: '^src/gateway/' },
      {
        pathNot: [
          '^src/gateway/',
          '^src/policy/',
          '^src/ports/',
          '^src/errors',
          '^(node:)?(crypto|stream|buffer|timers|events)(/|$)',
        ],
      },
    ),
    only(
      'adapters-do-not-meet',
      'an adapter family knows nothing of another (a logger is handed in)',
      { path: '^src/adapters/([^/]+)/' },
      { path: '^src/adapters/([^/]+)/', pathNot: '^src/adapters/$1/' },
    ),
    only(
      'adapters-do-not-know-the-ingress',
      'adapters serve ports, not routes',
      { path: '^src/adapters/' },
      { path: '^src/(ingress|supervise|simulate|gateway)/' },
    ),
    only(
      'redis-in-one-place',
      'only adapters/redis speaks to Redis',
      { path: '^(src|workers)/', pathNot: '^src/adapters/redis/' },
      { path: 'node_modules/(bullmq|ioredis)' },
    ),
    only(
      'undici-in-one-place',
      'only adapters/upstream calls out, and the command line, which calls Berth',
      {
        path: '^(src|workers)/',
        pathNot: '^src/(adapters/upstream/|cli/berth-client\\.ts)',
      },
      { path: 'node_modules/undici' },
    ),
    only(
      'telemetry-in-one-place',
      'only adapters/telemetry counts and logs',
      { path: '^(src|workers)/', pathNot: '^src/adapters/telemetry/' },
      { path: 'node_modules/(prom-client|pino)' },
    ),
    only(
      'express-in-one-place',
      'only the ingress serves',
      { path: '^(src|workers)/', pathNot: '^src/ingress/' },
      { path: 'node_modules/(express|@bull-board)' },
    ),
    only(
      'zod-in-one-place',
      'only what was written down elsewhere is parsed with zod: configuration, key file, snapshot of the books, traces, requests to Berth itself',
      {
        path: '^(src|workers)/',
        pathNot:
          '^src/(config/|cli/key-list\\.ts|adapters/redis/ledger-snapshot\\.ts|simulate/trace\\.ts|ingress/(api/|film-request\\.ts|request-terms\\.ts))',
      },
      { path: 'node_modules/zod' },
    ),
    only(
      'demo-stands-alone',
      'the demo model server imports nothing of ours',
      { path: '^src/demo-model-server/' },
      { path: '^(src|workers)/', pathNot: '^src/demo-model-server/' },
    ),
    only(
      'no-test-code-in-production',
      'test support never ships',
      { path: '^(src|workers)/' },
      { path: '^(test|bench)/' },
    ),
    only(
      'no-dev-dependencies',
      'what runs is in dependencies',
      { path: '^(src|workers)/' },
      { dependencyTypes: ['npm-dev'] },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'default', 'types'],
    },
  },
};
