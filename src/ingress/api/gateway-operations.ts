import type { Json } from './component-schemas.ts';
import type { Operation, Paths } from './operation.ts';
import { shared } from './parameters.ts';
import { errors, json } from './responses.ts';

const tags = ['gateway'] as const;

const text = (description: string, type: string): Json => ({
  description,
  content: { [type]: { schema: { type: 'string' } } },
});

const page = (operationId: string, summary: string, description: string): Operation => ({
  operationId,
  tags,
  summary,
  description,
  responses: { '200': text('The page.', 'text/html'), ...errors() },
});

/** Operations about the gateway itself. */
export const gatewayOperations: Paths = {
  '/berth/queue': {
    get: {
      operationId: 'getQueue',
      tags,
      summary: 'The running job, and who goes when',
      description: 'The plan as the scorer last published it (`as_of`).',
      parameters: shared('Member'),
      responses: { '200': json('The plan.', 'Queue'), ...errors() },
    },
  },
  '/berth/metrics': {
    get: {
      operationId: 'getMetrics',
      tags,
      summary: 'Metrics of all processes',
      responses: { '200': text("Prometheus' text format.", 'text/plain'), ...errors() },
    },
  },
  '/berth/healthz': {
    get: {
      operationId: 'getHealth',
      tags,
      summary: 'Whether the process answers',
      security: [],
      responses: { '200': text('It does.', 'text/plain') },
    },
  },
  '/berth/readyz': {
    get: {
      operationId: 'getReadiness',
      tags,
      summary: 'Whether jobs can be taken',
      security: [],
      responses: {
        '200': json('They can.', 'Readiness'),
        '503': json('They cannot.', 'Readiness'),
      },
    },
  },
  '/berth/openapi.json': {
    get: {
      operationId: 'getOpenApi',
      tags,
      summary: 'This document',
      responses: {
        '200': {
          description: 'OpenAPI 3.1.',
          content: { 'application/json': { schema: { type: 'object' } } },
        },
        ...errors(),
      },
    },
  },
  '/berth/docs': {
    get: page('getDocs', 'This document as a page', 'Nothing of it comes from other hosts.'),
  },
  '/berth/board': {
    get: page(
      'getBoard',
      'Bull Board',
      'To look at the queue, and to run one failed job again. Needs the key of an administrator.',
    ),
  },
};
