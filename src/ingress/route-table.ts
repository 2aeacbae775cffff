import type { JobKind } from '../ports/telemetry.ts';

/** Where a route's model id is found. */
export type ModelSource = 'body' | 'query' | 'path' | 'comfyui' | 'none';

/** What a request line says about the GPU. */
export type RouteMatch =
  | {
      needsGpu: true;
      route: string;
      kind: JobKind;
      modelSource: ModelSource;
      /** It passes at once when its model is loaded, and takes a turn only to have it loaded. */
      passesWhenReady?: true;
    }
  | { needsGpu: false };

/** The model behind `/comfyui/`, as llama-swap calls it. */
export const COMFY_MODEL = 'comfyui_auto';

/** Routes whose model stands in the body of a POST. */
export const bodyRoutes: readonly [kind: JobKind, paths: readonly string[]][] = [
  [
    'text',
    [
      '/v1/chat/completions',
      '/v1/completions',
      '/completion',
      '/infill',
      '/v1/responses',
      '/v1/messages',
      '/v1/messages/count_tokens',
      '/v1/embeddings',
      '/v1/rerank',
      '/v1/reranking',
      '/rerank',
      '/reranking',
      '/v/chat/completions',
      '/v/responses',
      '/v/completions',
      '/v/messages',
      '/v/messages/count_tokens',
      '/v/embeddings',
      '/v/rerank',
      '/v/reranking',
    ],
  ],
  [
    'audio',
    ['/v1/audio/speech', '/v1/audio/voices', '/v1/audio/transcriptions', '/audioapi/v1/tasks/run'],
  ],
  [
    'image',
    ['/v1/images/generations', '/v1/images/edits', '/sdapi/v1/txt2img', '/sdapi/v1/img2img'],
  ],
];
/** Routes whose model stands in the query of a GET. */
export const queryRoutes: readonly [kind: JobKind, path: string][] = [
  ['audio', '/v1/audio/voices'],
  ['image', '/sdapi/v1/loras'],
  ['text', '/props'],
];

const POSTS = new Map(
  bodyRoutes.flatMap(([kind, paths]) => paths.map((path) => [path, kind] as const)),
);
const GETS = new Map(queryRoutes.map(([kind, path]) => [path, kind] as const));
/** Paths below a model that llama-swap never loads a model for (its default `ignorePaths`). */
const STATIC_ENDING = /\.(?:js|json|css|png|gif|jpe?g|ico|txt)$/i;

/** What steers work that runs already, and uploads: they must get through while it runs (ComfyUI, stable-diffusion). */
const STEERING =
  /\/(?:interrupt|queue|history|upload\/(?:image|mask)|sdapi\/v1\/(?:interrupt|skip))$/;
/** Of `/comfyui/` llama-swap loads the model for the root alone; a prompt renders. */
const COMFY_PROMPT = /^\/comfyui\/(?:api\/)?prompt$/;
/** What stops models, or changes what their ids mean. */
const CONTROLS: readonly [method: string, path: RegExp, route: string][] = [
  ['GET', /^\/unload$/, '/unload'],
  ['HEAD', /^\/unload$/, '/unload'],
  ['POST', /^\/api\/models\/unload(?:\/.*)?$/, '/api/models/unload'],
  ['PUT', /^\/api\/profiles\/active$/, '/api/profiles/active'],
];

const PASS: RouteMatch = { needsGpu: false };

/**
 * llama-swap's route table (its routes at v250): which requests load, use or stop a model. `path` is raw, without
 * query. Everything that is not listed is the model server's to answer, at once.
 */
export function matchRoute(method: string, path: string): RouteMatch {
  if (method === 'POST') {
    const kind = POSTS.get(path);
    if (kind !== undefined) return { needsGpu: true, route: path, kind, modelSource: 'body' };
  }
  if (method === 'GET' || method === 'HEAD') {
    const kind = GETS.get(path);
    if (kind !== undefined) return { needsGpu: true, route: path, kind, modelSource: 'query' };
  }
  const control = CONTROLS.find(([verb, pattern]) => verb === method && pattern.test(path));
  if (control !== undefined)
    return { needsGpu: true, route: control[2], kind: 'other', modelSource: 'none' };
  return belowAModel(method, path);
}

function belowAModel(method: string, path: string): RouteMatch {
  if (method === 'OPTIONS') return PASS;
  const comfy = { needsGpu: true, modelSource: 'comfyui' } as const;
  if (path === '/comfyui/') return { ...comfy, route: path, kind: 'other', passesWhenReady: true };
  if (method === 'POST' && COMFY_PROMPT.test(path))
    return { ...comfy, route: '/comfyui/prompt', kind: 'image' };
  const below = /^\/upstream\/(.+)$/.exec(path)?.[1];
  if (below?.includes('/') !== true || STATIC_ENDING.test(path)) return PASS;
  const upstream = {
    needsGpu: true,
    route: '/upstream/{model}',
    kind: kindOf(below),
    modelSource: 'path',
  } as const;
  const isLook = method === 'GET' || method === 'HEAD';
  return isLook || STEERING.test(path) ? { ...upstream, passesWhenReady: true } : upstream;
}

/** The model ids a path below `/upstream/` may begin with, longest first, decoded; ids may contain slashes. */
export function upstreamCandidates(path: string): string[] {
  const segments = path.slice('/upstream/'.length).split('/');
  const candidates: string[] = [];
  for (let count = segments.length - 1; count > 0; count -= 1) {
    const id = decode(segments.slice(0, count).join('/'));
    if (id !== undefined && id !== '') candidates.push(id);
  }
  return candidates;
}

function kindOf(below: string): JobKind {
  if (/\/(?:[^/]*video[^/]*)(?:\/|$)/i.test(below)) return 'video';
  if (/\/(?:images|txt2img|img2img|prompt)(?:\/|$)/i.test(below)) return 'image';
  if (/\/audio\//i.test(below)) return 'audio';
  return /\/(?:completions?|responses|messages|embeddings|infill|rerank(?:ing)?)$/i.test(below)
    ? 'text'
    : 'other';
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
