import type { JobKind } from '../../ports/telemetry.ts';
import { bodyRoutes, queryRoutes } from '../route-table.ts';
import type { Json } from './component-schemas.ts';
import type { Operation, Paths } from './operation.ts';
import { gpuHeaders } from './parameters.ts';
import { errors, headers, jobHeaders, json } from './responses.ts';

const tags = ['gpu'] as const;

const responses: Operation['responses'] = {
  '200': {
    description: "The model server's answer, untouched; the status is its own.",
    headers: headers({ ...jobHeaders, 'Server-Timing': 'ServerTiming' }),
    content: { '*/*': {} },
  },
  '202': json('`Prefer: respond-async` was followed: the job is durable.', 'Job', {
    headers: headers({
      ...jobHeaders,
      Location: 'JobLocation',
      'Preference-Applied': 'PreferenceApplied',
    }),
  }),
  ...errors(409, 410, 413, 415, 422, 429, 502, 504),
};

const modelOf = (schema: Json): Json => ({
  schema: {
    type: 'object',
    properties: { model: { type: 'string', description: 'An id or alias of the model server.' } },
    required: ['model'],
    ...schema,
  },
});

const requestBody: Json = {
  required: true,
  description: 'As the model server takes it; forwarded untouched.',
  content: {
    'application/json': modelOf({}),
    'multipart/form-data': modelOf({}),
    'application/x-www-form-urlencoded': modelOf({}),
  },
};

/** `post /v1/chat/completions`: `postV1ChatCompletions`. */
const operationIdOf = (method: string, path: string): string =>
  method + path.replace(/[^A-Za-z0-9]+(.)?/g, (_, letter?: string) => letter?.toUpperCase() ?? '');

const posted = (kind: JobKind, path: string): Operation => ({
  operationId: operationIdOf('post', path),
  tags,
  summary: `A job of kind ${kind}`,
  parameters: gpuHeaders,
  requestBody,
  responses,
});

const asked = (kind: JobKind, path: string): Operation => ({
  operationId: operationIdOf('get', path),
  tags,
  summary: `A job of kind ${kind}`,
  parameters: [
    { name: 'model', in: 'query', required: true, schema: { type: 'string' } },
    ...gpuHeaders,
  ],
  responses,
});

const below: Operation = {
  ...posted('other', '/upstream/{model}/{path}'),
  summary: "Any path of the model's own server",
  description:
    'Ids of models and paths may hold slashes. Files, looks and what steers running work pass the queue by.',
  parameters: [
    { name: 'model', in: 'path', required: true, schema: { type: 'string' } },
    { name: 'path', in: 'path', required: true, schema: { type: 'string' } },
    ...gpuHeaders,
  ],
  requestBody: { content: { '*/*': {} } },
};

const comfy: Operation = {
  ...posted('image', '/comfyui/prompt'),
  summary: 'A prompt of ComfyUI',
  description: 'Answered at once; the job holds the GPU until it is rendered.',
  requestBody: { content: { 'application/json': { schema: { type: 'object' } } } },
};

/** The routes of the model server that need the GPU, by the route table that serves them. */
export function gpuOperations(): Paths {
  const paths: Record<string, Record<string, Operation>> = {};
  for (const [kind, list] of bodyRoutes)
    for (const path of list) paths[path] = { post: posted(kind, path) };
  for (const [kind, path] of queryRoutes) paths[path] = { ...paths[path], get: asked(kind, path) };
  return {
    ...paths,
    '/upstream/{model}/{path}': { post: below },
    '/comfyui/prompt': { post: comfy },
  };
}
