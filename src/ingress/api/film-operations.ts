import { FILM_BYTES } from '../film-request.ts';
import { refTo } from './component-schemas.ts';
import type { Operation, Paths } from './operation.ts';
import { priorityHeaders, shared } from './parameters.ts';
import { errors, eventStream, headers, json } from './responses.ts';

const tags = ['films'] as const;

const film = json('The film as it is then.', 'Film');

const change = (operationId: string, summary: string, description: string): Operation => ({
  operationId,
  tags,
  summary,
  description,
  parameters: shared('FilmId', 'Member'),
  responses: { '200': film, ...errors(404, 429) },
});

const create: Operation = {
  operationId: 'createFilm',
  tags,
  summary: 'Make a film',
  description:
    'Up to 10,000 requests that run one after another, through any crash. Without a priority header they are batch, as with ' +
    '`X-Berth-Intent: film-shot`. A fault is a 400 whose `param` names its field, and nothing of the film is kept.',
  parameters: [...priorityHeaders, ...shared('IdempotencyKey', 'Webhook')],
  requestBody: {
    required: true,
    description: `At most ${FILM_BYTES} bytes, without a content coding.`,
    content: {
      'application/json': {
        schema: refTo('FilmRequest'),
        example: {
          shots: [
            {
              path: '/v1/images/generations',
              body: { model: 'flux', prompt: 'a pier at dawn', seed: 7 },
            },
            {
              path: '/v1/images/generations',
              body: { model: 'flux', prompt: 'the boat leaves' },
              take: [{ from: '/data/0/seed', to: '/seed' }],
            },
          ],
        },
      },
    },
  },
  responses: {
    '202': json('All of it is durable.', 'Film', {
      headers: headers({ Location: 'FilmLocation' }),
    }),
    ...errors(413, 415, 429),
  },
};

/** Operations below `/berth/films`. */
export const filmOperations: Paths = {
  '/berth/films': {
    post: create,
    get: {
      operationId: 'listFilms',
      tags,
      summary: 'The newest films',
      parameters: shared('Member'),
      responses: { '200': json('At most a hundred.', 'FilmList'), ...errors() },
    },
  },
  '/berth/films/{id}': {
    get: {
      operationId: 'getFilm',
      tags,
      summary: 'A film and its shots',
      parameters: shared('FilmId', 'Member'),
      responses: { '200': json('The film.', 'Film'), ...errors(404) },
    },
    delete: change(
      'deleteFilm',
      'Cancel a film',
      'A waiting shot goes, one that runs is aborted; what is done stays.',
    ),
  },
  '/berth/films/{id}/events': {
    get: {
      operationId: 'followFilm',
      tags,
      summary: 'A film in short at every change',
      description: 'Server-sent events until the film is completed or cancelled.',
      parameters: shared('FilmId', 'Member'),
      responses: {
        '200': eventStream('Events `film`; `id` is its revision.', { film: 'FilmSummary' }),
        ...errors(404),
      },
    },
  },
  '/berth/films/{id}/pause': {
    post: change(
      'pauseFilm',
      'Pause a film',
      'A waiting shot leaves the queue; one that runs ends, and none follows.',
    ),
  },
  '/berth/films/{id}/resume': {
    post: change('resumeFilm', 'Resume a paused film', 'It goes on with the shot it stands at.'),
  },
  '/berth/films/{id}/retry': {
    post: change('retryFilm', 'Retry the shot a film failed at', 'The shot is made anew.'),
  },
  '/berth/films/{id}/skip': {
    post: change(
      'skipShot',
      'Go on without a shot',
      'Without the shot it stands at; not while that one runs (400).',
    ),
  },
  '/berth/films/{id}/cancel': {
    post: change('cancelFilm', 'Cancel a film', 'The same as DELETE.'),
  },
};
