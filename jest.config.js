/** One project a layer: `npm run test:policy` and so on choose by name. */
const layer = (name, glob = `test/${name}/**/*.test.ts`) => ({
  displayName: name,
  testMatch: [`<rootDir>/${glob}`],
  extensionsToTreatAsEsm: ['.ts'],
  testEnvironment: 'node',
  transform: {
    '^.+\\.ts$': ['@swc/jest', { jsc: { target: 'es2022', parser: { syntax: 'typescript' } } }],
  },
});

export default {
  maxWorkers: 2,
  testTimeout: 30_000,
  projects: [
    layer('policy'),
    layer('contract'),
    layer('integration'),
    layer('conformance'),
    layer('e2e'),
    layer('days'),
    layer('browser'),
    layer('chaos'),
    layer('nightly'),
  ],
};
