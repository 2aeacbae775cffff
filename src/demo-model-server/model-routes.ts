import { transcriptions } from './audio.ts';
import { embeddings, llamaEmbeddings } from './embeddings.ts';
import type { Endpoint } from './generation.ts';
import { imageEdits, imageGenerations } from './image.ts';
import { infill, llamaCompletion } from './llama-completion.ts';
import { countTokens, messages } from './messages.ts';
import { props } from './props.ts';
import { rerank } from './rerank.ts';
import { responses } from './responses.ts';
import { audioTask, speech } from './speech.ts';
import { img2img, loras, txt2img } from './stable-diffusion.ts';
import { chatCompletions, completions } from './text.ts';
import { voices } from './voices.ts';

type Served = readonly [path: string, endpoint: Endpoint];

/** Paths that llama-swap serves at the top as they are, the model in the body. */
const posts: readonly Served[] = [
  ['/v1/chat/completions', chatCompletions],
  ['/v1/completions', completions],
  ['/completion', llamaCompletion],
  ['/infill', infill],
  ['/v1/responses', responses],
  ['/v1/messages', messages],
  ['/v1/messages/count_tokens', countTokens],
  ['/v1/embeddings', embeddings],
  ['/v1/rerank', rerank],
  ['/v1/reranking', rerank],
  ['/rerank', rerank],
  ['/reranking', rerank],
  ['/v1/audio/speech', speech],
  ['/v1/audio/voices', voices],
  ['/v1/audio/transcriptions', transcriptions],
  ['/v1/images/generations', imageGenerations],
  ['/v1/images/edits', imageEdits],
  ['/sdapi/v1/txt2img', txt2img],
  ['/sdapi/v1/img2img', img2img],
];

/** Paths that it serves at the top, the model in the query. */
const gets: readonly Served[] = [
  ['/v1/audio/voices', voices],
  ['/sdapi/v1/loras', loras],
  ['/props', props],
];

/** Paths that it serves with `/v` before them, which it takes away. `completions` and `embeddings` are llama-server's own. */
const versionless: readonly Served[] = [
  ['/chat/completions', chatCompletions],
  ['/completions', llamaCompletion],
  ['/responses', responses],
  ['/messages', messages],
  ['/messages/count_tokens', countTokens],
  ['/embeddings', llamaEmbeddings],
  ['/rerank', rerank],
  ['/reranking', rerank],
];

/** The one path that it serves with `/audioapi` before it. */
const audioTaskPath = '/v1/tasks/run';

const byGet = new Map(gets);
const byPost = new Map([...posts, ...versionless, [audioTaskPath, audioTask] as const]);
const topPosts = new Map<string, string>([
  ...posts.map(([path]) => [path, path] as const),
  ...versionless.map(([path]) => [`/v${path}`, path] as const),
  [`/audioapi${audioTaskPath}`, audioTaskPath],
]);

/** GET stands for HEAD too. */
const isRead = (method: string): boolean => method === 'GET' || method === 'HEAD';

/** What a model's own server answers at one of its paths; undefined when it has nothing there. */
export function modelEndpoint(method: string, path: string): Endpoint | undefined {
  if (isRead(method)) return byGet.get(path);
  return method === 'POST' ? byPost.get(path) : undefined;
}

/** A path at the top that finds its model in the request. */
export interface TopRoute {
  /** With the methods it takes. */
  readonly methods: readonly string[];
  /** Path at the model's own server, and what it answers there; undefined for a method that the path does not take. */
  readonly served: { readonly path: string; readonly endpoint: Endpoint } | undefined;
}

/** The inference route at a path of llama-swap; undefined when there is none. */
export function topRoute(method: string, path: string): TopRoute | undefined {
  const posted = topPosts.get(path);
  const isGet = byGet.has(path);
  if (posted === undefined && !isGet) return undefined;
  const methods = [...(isGet ? ['GET', 'HEAD'] : []), ...(posted === undefined ? [] : ['POST'])];
  const own = method === 'POST' ? posted : path;
  const endpoint =
    own !== undefined && methods.includes(method) ? modelEndpoint(method, own) : undefined;
  const served = own === undefined || endpoint === undefined ? undefined : { path: own, endpoint };
  return { methods, served };
}
