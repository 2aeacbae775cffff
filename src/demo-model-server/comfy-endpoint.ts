import type { ComfyUi } from './comfy-ui.ts';
import { modelJson, readJsonObject, workMs, type Endpoint, type Generation } from './generation.ts';
import { paint } from './png.ts';

/** Paths of ComfyUI that change what it does without rendering anything. */
export const comfyControls: ReadonlySet<string> = new Set([
  '/queue',
  '/interrupt',
  '/history',
  '/free',
]);

/** ComfyUI serves every path below `/api` too. */
export const comfyPath = (path: string): string => path.replace(/^\/api(?=\/)/, '');

/** ComfyUI's answers for a path of a model's own server; undefined when it has none there. */
export function comfyEndpoint(
  method: string,
  fullPath: string,
  comfy: ComfyUi,
): Endpoint | undefined {
  const path = comfyPath(fullPath);
  const isPost = method === 'POST';
  if (isPost && path === '/prompt') return async (generation) => submit(generation, comfy);
  if (path === '/') return sendPage;
  if (path === '/prompt') return sendJson(() => ({ exec_info: comfy.remaining() }));
  if (isPost && path === '/interrupt') return async (generation) => interrupt(generation, comfy);
  if (isPost && path === '/queue') return async (generation) => edit(generation, comfy);
  if (isPost && path === '/free') return sendJson(() => ({}));
  if (path === '/queue') return sendJson(() => comfy.queue());
  if (path === '/history') return sendJson(() => comfy.history());
  if (path.startsWith('/history/'))
    return sendJson(() => comfy.history(path.slice('/history/'.length)));
  if (path === '/system_stats') return sendJson(() => ({ system: { comfyui_version: 'demo' } }));
  if (path === '/view') return sendPicture;
  return undefined;
}

const sendJson =
  (value: () => object): Endpoint =>
  async ({ answer }) =>
    answer.send(200, modelJson, JSON.stringify(value()));

const sendPage: Endpoint = async ({ answer }) => {
  await answer.send(
    200,
    { 'Content-Type': 'text/html' },
    '<!doctype html><title>ComfyUI</title>\n',
  );
};

const sendPicture: Endpoint = async ({ answer, query }) => {
  const seed = Buffer.from((query.get('filename') ?? '').padEnd(8, '0'));
  await answer.send(200, { 'Content-Type': 'image/png' }, paint(seed, 64, 64));
};

async function submit(generation: Generation, comfy: ComfyUi): Promise<void> {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  if (typeof fields.prompt !== 'object' || fields.prompt === null) {
    const error = { type: 'no_prompt', message: 'No prompt provided', details: '', extra_info: {} };
    await generation.answer.send(400, modelJson, JSON.stringify({ error, node_errors: {} }));
    return;
  }
  const { times } = generation;
  const { id, number } = comfy.submit(workMs(fields, times.imageMs, times), generation.holdGpu());
  await generation.answer.send(
    200,
    modelJson,
    JSON.stringify({ prompt_id: id, number, node_errors: {} }),
  );
}

async function interrupt(generation: Generation, comfy: ComfyUi): Promise<void> {
  const fields = generation.body.length === 0 ? {} : await readJsonObject(generation);
  if (fields === undefined) return;
  comfy.interrupt(typeof fields.prompt_id === 'string' ? fields.prompt_id : undefined);
  await generation.answer.send(200, modelJson, '');
}

async function edit(generation: Generation, comfy: ComfyUi): Promise<void> {
  const fields = await readJsonObject(generation);
  if (fields === undefined) return;
  const ids = Array.isArray(fields.delete) ? fields.delete : [];
  comfy.remove((id) => fields.clear === true || ids.includes(id));
  await generation.answer.send(200, modelJson, '');
}
