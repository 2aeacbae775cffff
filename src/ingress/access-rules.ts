import { pathReadings } from './path-readings.ts';

/** What a request needs to be let in while keys are configured. */
export type Access = 'none' | 'key' | 'admin';

/** A path that an ordinary key does not open. */
export interface AdminRule {
  /** `*` is one segment, `**` any number of them, also none. */
  readonly path: string;
  /** `writes`: every method but GET and HEAD. */
  readonly methods: 'all' | 'writes';
  /** What it would give away, as the documentation says it. */
  readonly because: string;
}

/** Open to everybody: the health of Berth and of llama-swap. */
export const openPaths: readonly string[] = [
  '/health',
  '/wol-health',
  '/berth/healthz',
  '/berth/readyz',
];

const all = (path: string, because: string): AdminRule => ({ path, methods: 'all', because });
const writes = (path: string, because: string): AdminRule => ({ path, methods: 'writes', because });

const own: readonly AdminRule[] = [all('/berth/board/**', 'every job, and the retry of one')];

const llamaSwap: readonly AdminRule[] = [
  all('/unload/**', 'stops all models, running work included, on a GET'),
  all('/api/models/unload/**', 'stops models, running work included'),
  all('/api/inflight/**', 'cancels the work of others'),
  writes('/api/profiles/**', 'changes which model an id means, for everybody'),
  all('/logs/**', 'prompts and command lines'),
  all('/api/captures/**', 'prompts and answers'),
  all('/api/events', 'logs, and the requests of others'),
  all('/api/metrics', 'the requests of others (older versions)'),
  all('/api/metrics/activity', 'the requests of others'),
];

const modelServers: readonly AdminRule[] = ['/upstream/**', '/comfyui/**'].flatMap((below) => [
  all(`${below}/slots/**`, 'prompts; saves and erases contexts (llama-server)'),
  writes(`${below}/props`, 'settings for everybody (llama-server)'),
  writes(`${below}/lora-adapters`, 'settings for everybody (llama-server)'),
  all(`${below}/models/load`, 'loads a model past the queue (llama-server)'),
  all(`${below}/models/unload`, 'stops a model (llama-server)'),
  all(`${below}/history`, 'prompts of all jobs, and their removal (ComfyUI)'),
  all(`${below}/queue`, 'prompts of all jobs, and their removal (ComfyUI)'),
  all(`${below}/interrupt`, 'stops the work of others (ComfyUI, stable-diffusion)'),
  all(`${below}/free`, 'unloads models (ComfyUI)'),
  all(`${below}/sdapi/v1/progress`, 'prompt and image of the running job (stable-diffusion)'),
  all(`${below}/sdapi/v1/skip`, 'stops the work of others (stable-diffusion)'),
  writes(`${below}/sdapi/v1/options`, 'settings for everybody (stable-diffusion)'),
  all(`${below}/sdapi/v1/unload-checkpoint`, 'unloads a model (stable-diffusion)'),
  all(`${below}/sdapi/v1/reload-checkpoint`, 'loads a model past the queue (stable-diffusion)'),
  all(`${below}/sdapi/v1/server-kill`, 'stops the model server (stable-diffusion)'),
  all(`${below}/sdapi/v1/server-restart`, 'stops the model server (stable-diffusion)'),
  all(`${below}/sdapi/v1/server-stop`, 'stops the model server (stable-diffusion)'),
]);

/** Everything that changes the state of the machine for all, or shows what others asked for. */
export const adminRules: readonly AdminRule[] = [...own, ...llamaSwap, ...modelServers];

const compiled = adminRules.map(({ path, methods }) => ({ pattern: patternOf(path), methods }));

/**
 * What a request needs. `target` is the request target as it came.
 *
 * 1. OPTIONS is answered to everybody, as by llama-swap.
 * 2. The open paths are, to GET and HEAD, when they are written exactly like that.
 * 3. A path that can be read as one of the admin rules' needs an admin key.
 * 4. Everything else needs a key.
 */
export function accessFor(method: string, target: string): Access {
  const isRead = method === 'GET' || method === 'HEAD';
  // 1
  if (method === 'OPTIONS') return 'none';
  // 2
  if (isRead && openPaths.includes(target.replace(/\?.*$/s, ''))) return 'none';
  // 3
  const readings = pathReadings(target);
  const isAdmin = compiled.some(
    ({ pattern, methods }) =>
      (methods === 'all' || !isRead) && readings.some((path) => pattern.test(path)),
  );
  // 4
  return isAdmin ? 'admin' : 'key';
}

function patternOf(path: string): RegExp {
  const segments = path
    .split('/')
    .slice(1)
    .map((segment) => {
      if (segment === '**') return '(?:/[^/]+)*';
      return segment === '*' ? '/[^/]+' : `/${segment.replace(/[.+?^$()[\]{}|\\]/g, '\\$&')}`;
    });
  return new RegExp(`^${segments.join('')}$`);
}
