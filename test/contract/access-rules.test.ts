import { readFileSync } from 'node:fs';
import { describe, expect, test } from '@jest/globals';
import fc from 'fast-check';
import { accessFor, adminRules, openPaths } from '../../src/ingress/access-rules.ts';
import { pathReadings } from '../../src/ingress/path-readings.ts';

/** A path that the rule closes. */
const example = (rule: string): string => rule.replaceAll('/**', '/x').replaceAll('*', 'y');

describe('what a request needs with keys configured', () => {
  test.each([
    ['GET', '/health', 'none'],
    ['HEAD', '/wol-health?x=1', 'none'],
    ['GET', '/berth/healthz', 'none'],
    ['GET', '/berth/readyz', 'none'],
    ['OPTIONS', '/unload', 'none'],
    ['OPTIONS', '/v1/chat/completions', 'none'],
    ['POST', '/health', 'key'],
    ['GET', '/', 'key'],
    ['GET', '/health/', 'key'],
    ['GET', '/Health', 'key'],
    ['GET', '/v1/models', 'key'],
    ['POST', '/v1/chat/completions', 'key'],
    ['GET', '/running', 'key'],
    ['GET', '/metrics', 'key'],
    ['GET', '/api/metrics/stats', 'key'],
    ['GET', '/api/profiles', 'key'],
    ['GET', '/api/profiles/active', 'key'],
    ['GET', '/berth/metrics', 'key'],
    ['GET', '/berth/jobs', 'key'],
    ['GET', '/berth/openapi.json', 'key'],
    ['GET', '/berth/docs', 'key'],
    ['GET', '/berth/docs/start.js', 'key'],
    ['GET', '/berth/boards', 'key'],
    ['GET', '/upstream/m/props', 'key'],
    ['GET', '/upstream/m/history/123', 'key'],
    ['POST', '/upstream/m/v1/chat/completions', 'key'],
    ['GET', '/upstream/m/v1/slots-of-time', 'key'],
    ['GET', '/unload', 'admin'],
    ['GET', '/unload?now', 'admin'],
    ['POST', '/api/models/unload', 'admin'],
    ['POST', '/api/models/unload/org/model', 'admin'],
    ['POST', '/api/inflight/7/cancel', 'admin'],
    ['PUT', '/api/profiles/active', 'admin'],
    ['GET', '/logs', 'admin'],
    ['GET', '/logs/stream/org/model', 'admin'],
    ['GET', '/api/captures/1', 'admin'],
    ['GET', '/api/events', 'admin'],
    ['GET', '/api/metrics/activity', 'admin'],
    ['GET', '/upstream/m/slots', 'admin'],
    ['POST', '/upstream/org/m/slots/0?action=erase', 'admin'],
    ['GET', '/upstream/m/history', 'admin'],
    ['GET', '/upstream/m/api/history', 'admin'],
    ['POST', '/upstream/m/props', 'admin'],
    ['POST', '/comfyui/interrupt', 'admin'],
    ['GET', '/comfyui/queue', 'admin'],
    ['GET', '/upstream/m/sdapi/v1/progress', 'admin'],
    ['GET', '/berth/board', 'admin'],
    ['PUT', '/berth/board/api/queues/gpu/1/retry', 'admin'],
  ])('%s %s: %s', (method, target, access) => {
    expect(accessFor(method, target)).toBe(access);
  });

  test.each([
    '//unload',
    '/unload/',
    '/unload//',
    '/./unload',
    '/v1/../unload',
    '/v1/models/../../unload',
    '/../unload',
    '/UNLOAD',
    '/%75nload',
    '/%2575nload',
    '/%252575nload',
    '/%55NLOAD',
    '/%2e/unload',
    '/v1/%2e%2e/unload',
    '/v1/.%2E/unload',
    '/v1%2f..%2funload',
    '/v1/..%2funload',
    '/%2funload',
    '/%5cunload',
    '\\unload',
    '/unload%00',
    '/unload%20',
    '/unload%0a',
    '/unload;x=1',
    '/unload%3bx',
    '/unload#x',
    '/unload%23x',
    '/unload%3fx',
    '/unload?/health',
    '/unload/x/..',
    '/health/../unload',
    '/health%2f..%2funload',
    'http://127.0.0.1:8080/unload',
    'HTTP://127.0.0.1/%75nload?x',
    '/upstream/m/../../unload',
    '/upstream/m/%2e%2e/%2e%2e/unload',
    '/upstream/m//slots',
    '/upstream/m/sl%6fts',
    '/upstream/m/v1/../slots',
    '/upstream/m/Slots/0',
    '/upstream/m%2fslots',
    '/upstream%2fm%2fslots',
    '/berth/board/',
    '/Berth/Board',
    '//berth//board',
    '/berth/%62oard',
    '/berth/x/../board/static/app.js',
  ])('%s does not get round the admin rule', (target) => {
    expect(accessFor('GET', target)).toBe('admin');
  });

  test.each(['/v1/../health', '/%68ealth', '//health', '/health;x', '/health/../v1/models'])(
    '%s is not the open path it looks like',
    (target) => {
      expect(accessFor('GET', target)).toBe('key');
    },
  );

  test('every rule closes its own example, for reading only where it says so', () => {
    for (const { path, methods } of adminRules) {
      expect([path, accessFor('POST', example(path))]).toEqual([path, 'admin']);
      const forReads = methods === 'all' ? 'admin' : 'key';
      expect([path, accessFor('GET', example(path))]).toEqual([path, forReads]);
    }
  });

  test('a closed path stays closed however its characters are coded', () => {
    const coded = fc
      .constantFrom('/unload', '/logs/stream', '/api/events', '/berth/board', '/upstream/m/slots')
      .chain((path) =>
        fc
          .array(fc.integer({ min: 0, max: 3 }), { minLength: path.length, maxLength: path.length })
          .map((rounds) =>
            path
              .split('')
              .map((char, at) => code(char, rounds[at] ?? 0))
              .join(''),
          ),
      );
    fc.assert(fc.property(coded, (target) => accessFor('GET', target) === 'admin'));
  });

  test('no target takes long or fails to be read', () => {
    fc.assert(fc.property(fc.string(), (text) => pathReadings(text).length > 0));
    const start = performance.now();
    for (const piece of ['/slots', '/..', '%25', ';', '/a', '%2f..', '\\']) {
      accessFor('GET', `/upstream${piece.repeat(65_000 / piece.length)}`);
    }
    expect(performance.now() - start).toBeLessThan(3000);
  });

  test('the documentation lists every rule and every open path', () => {
    const page = readFileSync('docs/architecture/drop-in.md', 'utf8');
    for (const path of openPaths) expect(page).toContain(`\`${path}\``);
    for (const { path, methods } of adminRules) {
      if (path.startsWith('/comfyui/')) continue;
      const shown = methods === 'all' ? path : `${path}\` (writes`;
      expect(page).toContain(`\`${shown}`);
    }
  });
});

function code(char: string, rounds: number): string {
  let text = char;
  for (let round = 0; round < rounds; round += 1) {
    text =
      round === 0
        ? `%${char.charCodeAt(0).toString(16).padStart(2, '0')}`
        : text.replace('%', '%25');
  }
  return text;
}
