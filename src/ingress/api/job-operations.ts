import { jobListQuery, jobQuery, jobStreamQuery } from './job-queries.ts';
import type { Json } from './component-schemas.ts';
import type { Operation, Paths } from './operation.ts';
import { queryParameters, shared } from './parameters.ts';
import { errors, eventStream, headers, jobHeaders, json } from './responses.ts';

const tags = ['jobs'] as const;
const anyBody: Json = { '*/*': {} };

/** Answers that are errors the job itself ended with. */
const OUTCOMES = [409, 502, 504] as const;

const result: Operation = {
  operationId: 'getJobResult',
  tags,
  summary: 'The answer of a job that has ended',
  description:
    'As a connected client would have got it: status, headers and bytes of the model server. Before the end it is a 404 with ' +
    '`Retry-After`; afterwards it is the error the job ended with, where there is no answer.',
  parameters: shared('JobId', 'Member', 'Range'),
  responses: {
    '200': {
      description: "The whole answer; the status is the model server's.",
      headers: headers({ ...jobHeaders, 'Accept-Ranges': 'AcceptRanges' }),
      content: anyBody,
    },
    '206': {
      description: 'The part that `Range` asked for.',
      headers: headers({ ...jobHeaders, 'Content-Range': 'ContentRange' }),
      content: anyBody,
    },
    '416': {
      description: 'There is no such part.',
      headers: headers({ ...jobHeaders, 'Content-Range': 'ContentRange' }),
    },
    ...errors(404, 410, ...OUTCOMES),
  },
};

const stream: Operation = {
  operationId: 'streamJobAnswer',
  tags,
  summary: 'The answer so far, then as it comes',
  description: 'Bytes of the model server from any place on, also while the job waits or runs.',
  parameters: [...shared('JobId', 'Member', 'StreamPlace'), ...queryParameters(jobStreamQuery)],
  responses: {
    '200': {
      description: "The answer from that place on; the status is the model server's.",
      headers: headers(jobHeaders),
      content: anyBody,
    },
    ...errors(404, 410, ...OUTCOMES),
  },
};

/** Operations below `/berth/jobs`; `bands`: the configured ones. */
export const jobOperations = (bands: readonly string[]): Paths => ({
  '/berth/jobs': {
    get: {
      operationId: 'listJobs',
      tags,
      summary: 'Jobs, newest first',
      parameters: [...queryParameters(jobListQuery(bands)), ...shared('Member')],
      responses: { '200': json('A page of jobs.', 'JobList'), ...errors() },
    },
  },
  '/berth/jobs/{id}': {
    get: {
      operationId: 'getJob',
      tags,
      summary: 'A job, or its next change',
      parameters: [...shared('JobId', 'Member', 'IfNoneMatch'), ...queryParameters(jobQuery)],
      responses: {
        '200': json('The job.', 'Job', { headers: headers({ ETag: 'ETag' }) }),
        '304': {
          description: 'It is as the client knows it.',
          headers: headers({ ETag: 'ETag' }),
        },
        ...errors(404),
      },
    },
    delete: {
      operationId: 'cancelJob',
      tags,
      summary: 'Cancel a job, waiting or running',
      description: 'May be repeated; a job that has ended stays as it is.',
      parameters: shared('JobId', 'Member'),
      responses: {
        '200': json('The job as it is then; one that stops slowly may still be running.', 'Job'),
        ...errors(404),
      },
    },
  },
  '/berth/jobs/{id}/result': { get: result },
  '/berth/jobs/{id}/events': {
    get: {
      operationId: 'followJob',
      tags,
      summary: 'States, places and progress as they come',
      description:
        'Server-sent events until the job has ended. Each has an `id` to come back with. Comments in between are signs of life.',
      parameters: shared('JobId', 'Member', 'EventPlace'),
      responses: {
        '200': eventStream('Events `state`, `position` and `progress`.', {
          state: 'StateEvent',
          position: 'PositionEvent',
          progress: 'ProgressEvent',
        }),
        '204': { description: 'The client has seen the end: do not come back.' },
        ...errors(404),
      },
    },
  },
  '/berth/jobs/{id}/explain': {
    get: {
      operationId: 'explainJob',
      tags,
      summary: 'Why a job waits, or waited',
      description:
        "Its terms, who is ahead of it and why, and its wait in pieces that add up. Others' jobs are not named.",
      parameters: shared('JobId', 'Member'),
      responses: { '200': json('The explanation.', 'Explanation'), ...errors(404) },
    },
  },
  '/berth/jobs/{id}/stream': { get: stream },
});
