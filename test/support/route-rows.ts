import { soundFile } from './sound-file.ts';

/** One request of llama-swap's route table. */
export interface RouteRow {
  readonly method: string;
  readonly target: string;
  readonly body?: string | Uint8Array<ArrayBuffer>;
  readonly type?: string;
}

const json = (method: string, target: string, fields: object): RouteRow => ({
  method,
  target,
  body: JSON.stringify(fields),
  type: 'application/json',
});
const post = (target: string, fields: object): RouteRow => json('POST', target, fields);
const get = (target: string): RouteRow => ({ method: 'GET', target });

const chat = { model: 'demo-chat', messages: [{ role: 'user', content: 'why?' }], max_tokens: 5 };
const prompt = { model: 'demo-chat', prompt: 'Once', max_tokens: 5, n_predict: 5 };
const order = { model: 'demo-chat', input: 'Once', max_output_tokens: 5 };
const ranking = { model: 'demo-embed', query: 'q', documents: ['one', 'two'] };
const embedding = { model: 'demo-embed', input: ['one', 'two'] };
const picture = { model: 'demo-image', prompt: 'a pier', size: '32x32', width: 32, height: 32 };
const png = Buffer.from('89504e470d0a1a0a', 'hex');

/** A form with one file, always the same bytes. */
function form(target: string, model: string, name: string, file: Uint8Array): RouteRow {
  const part = (head: string): string =>
    `--edge\r\nContent-Disposition: form-data; name=${head}\r\n\r\n`;
  const body = Buffer.concat([
    Buffer.from(`${part('"model"')}${model}\r\n${part('"size"')}32x32\r\n`),
    Buffer.from(part(`"${name}"; filename="a.bin"`)),
    file,
    Buffer.from('\r\n--edge--\r\n'),
  ]);
  return { method: 'POST', target, body, type: 'multipart/form-data; boundary=edge' };
}

const streamed = (rows: readonly (readonly [target: string, fields: object])[]): RouteRow[] =>
  rows.flatMap(([target, fields]) => [
    post(target, fields),
    post(target, { ...fields, stream: true }),
  ]);

/** Those that load or use a model, each with a model that answers it. */
export const queuedRows: readonly RouteRow[] = [
  ...streamed([
    ['/v1/chat/completions', chat],
    ['/v1/completions', prompt],
    ['/completion', prompt],
    ['/infill', { ...prompt, input_prefix: 'a' }],
    ['/v1/responses', order],
    ['/v1/messages', chat],
    ['/v/chat/completions', chat],
    ['/v/completions', prompt],
    ['/v/responses', order],
    ['/v/messages', chat],
  ]),
  post('/v1/messages/count_tokens', chat),
  post('/v/messages/count_tokens', chat),
  post('/v1/embeddings', embedding),
  post('/v/embeddings', embedding),
  ...['/v1/rerank', '/v1/reranking', '/rerank', '/reranking', '/v/rerank', '/v/reranking'].map(
    (target) => post(target, ranking),
  ),
  post('/v1/audio/speech', { model: 'demo-audio', voice: 'alloy', input: 'Ahoy there' }),
  post('/v1/audio/voices', { model: 'demo-audio' }),
  get('/v1/audio/voices?model=demo-audio'),
  form('/v1/audio/transcriptions', 'demo-audio', 'file', soundFile(1)),
  post('/audioapi/v1/tasks/run', { model: 'demo-audio', request: { text: 'Ahoy' } }),
  post('/v1/images/generations', picture),
  form('/v1/images/edits', 'demo-image', 'image', png),
  post('/sdapi/v1/txt2img', picture),
  post('/sdapi/v1/img2img', { ...picture, init_images: [png.toString('base64')] }),
  get('/sdapi/v1/loras?model=demo-image'),
  get('/props?model=demo-chat'),
  { method: 'HEAD', target: '/props?model=demo-chat' },
  post('/upstream/demo-chat/v1/chat/completions', chat),
  post('/upstream/demo/org-chat/any/thing', {}),
  post('/upstream/demo-video/v1/videos', { seconds: 1 }),
  { method: 'DELETE', target: '/upstream/demo-chat/any%2Fthing?x=%2f' },
  // What stops models takes a turn too, so that it cuts nobody.
  get('/unload'),
  post('/api/models/unload', {}),
  post('/api/models/unload/demo-chat', {}),
  json('PUT', '/api/profiles/active', { name: null }),
];

/** Looks at a model that take a turn while it is not loaded, and none when it is. */
export const lookRows: readonly RouteRow[] = [
  get('/upstream/demo-chat/health'),
  get('/upstream/demo/org-chat/'),
  { method: 'HEAD', target: '/upstream/demo-chat/anything' },
  get('/comfyui/'),
];

/** Those that need no model, or whose model needs no GPU. */
export const passingRows: readonly RouteRow[] = [
  ...['/health', '/wol-health', '/', '/ui', '/ui/', '/ui/models', '/ui/none.js', '/favicon.ico'],
  ...['/v1/models', '/models', '/running', '/api/profiles', '/api/version', '/api/hardware'],
  ...['/api/metrics/activity?limit=2', '/api/metrics/stats', '/api/captures/1', '/api/captures/x'],
  ...['/logs/stream/nobody', '/upstream', '/upstream/demo-chat?a=1', '/upstream/nobody/x'],
  ...['/comfyui', '/comfyui/queue', '/upstream/demo-chat/a.css'],
]
  .map(get)
  .concat([
    { method: 'HEAD', target: '/v1/models' },
    { method: 'OPTIONS', target: '/v1/messages' },
    post('/upstream/demo-chat', {}),
    post('/api/inflight/999999/cancel', {}),
    post('/v1/chat/completions', { ...chat, model: 'remote-chat' }),
  ]);

/** Information that changes from one look to the next; what it shows is compared without its numbers. */
export const changingRows: readonly RouteRow[] = ['/metrics', '/api/performance'].map(get);

/** Those that end when the client leaves. */
export const endlessRows: readonly RouteRow[] = [
  ...['/api/events', '/logs/stream', '/logs/stream/proxy', '/logs/stream/upstream'],
  ...['/logs/stream/demo-chat', '/logs/stream?no-history'],
].map(get);

/** Those that the model server refuses. */
export const refusedRows: readonly RouteRow[] = [
  get('/v1/chat/completions'),
  get('/v1/responses'),
  { method: 'PUT', target: '/v1/audio/voices' },
  post('/props', {}),
  post('/running', {}),
  get('/api/models/unload'),
  get('/api/inflight/1/cancel'),
  get('/v1/videos'),
  get('/no/such'),
  post('/v1/tasks/run', { model: 'demo-audio', request: {} }),
  post('/v1/audio/translations', {}),
  post('/v1/chat/completions', {}),
  post('/v1/messages', { model: 'nobody' }),
  get('/props'),
  get('/sdapi/v1/loras?model=nobody'),
  { method: 'POST', target: '/v1/embeddings', body: '{"model":', type: 'application/json' },
];

/** Those that would stop models, if the model server did not refuse them. */
export const refusedControlRows: readonly RouteRow[] = [
  json('PUT', '/api/profiles/active', { name: 'nobody' }),
  post('/api/models/unload/nobody', {}),
];
