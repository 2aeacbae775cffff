import { componentSchemas, refTo } from './component-schemas.ts';
import type { Json } from './component-schemas.ts';
import { filmOperations } from './film-operations.ts';
import { gatewayOperations } from './gateway-operations.ts';
import { gpuOperations } from './gpu-operations.ts';
import { jobOperations } from './job-operations.ts';
import { tags } from './operation.ts';
import { sharedParameters } from './parameters.ts';
import { errorList, errorResponses, sharedHeaders } from './responses.ts';

/** Version of the interface: that of the package. */
const VERSION = '0.1.0';

const ABOUT = `A durable priority gateway for one GPU. Each request that needs the GPU becomes a job with a priority; one runs at
a time, and its answer streams back. Every other path of the model server passes straight through.

Times are unix seconds. Answers may gain fields; ids are lower-case UUIDv4. Another member's job or film is a 404, with the same
words as one that never was. Without configured keys Berth serves its own machine alone and needs no key; with keys everything
but the health routes needs one.

## Errors

`;

/** What differs from one configuration to the next. */
export interface DocumentFacts {
  /** Names of the configured bands. */
  readonly bands: readonly string[];
}

const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: 'A key of Berth.' },
  basic: {
    type: 'http',
    scheme: 'basic',
    description: 'A key of Berth as the password; any user name will do.',
  },
  apiKey: { type: 'apiKey', in: 'header', name: 'x-api-key', description: 'A key of Berth.' },
} as const;

const signed = (name: string, description: string, schema: Json): Json => ({
  name,
  in: 'header',
  required: true,
  description,
  schema,
});

const jobEnded: Json = {
  post: {
    operationId: 'jobEnded',
    summary: 'A job has ended',
    description:
      'Posted to the address of `X-Berth-Webhook`, up to twelve times within six hours, signed as Standard Webhooks has it. ' +
      'An event may come twice: `webhook-id` is the same then.',
    security: [],
    parameters: [
      signed('webhook-id', 'Names the event.', { type: 'string' }),
      signed('webhook-timestamp', 'Unix seconds of this attempt.', {
        type: 'string',
        pattern: String.raw`^\d+$`,
      }),
      signed(
        'webhook-signature',
        '`v1,` and the base64 HMAC-SHA256 of `webhook-id.webhook-timestamp.body`.',
        { type: 'string', pattern: '^v1,' },
      ),
    ],
    requestBody: {
      required: true,
      content: { 'application/json': { schema: refTo('JobEvent') } },
    },
    responses: {
      '2XX': { description: 'Delivered; the body is not read.' },
      '410': { description: 'The receiver wants no more of it: no further attempt.' },
      default: {
        description: 'Anything else, a redirect too, or no answer within 15 s: tried again.',
      },
    },
  },
};

/** The description of Berth's HTTP interface: OpenAPI 3.1. */
export function openApiDocument({ bands }: DocumentFacts): Json {
  return {
    openapi: '3.1.1',
    jsonSchemaDialect: 'https://json-schema.org/draft/2020-12/schema',
    info: {
      title: 'Berth',
      version: VERSION,
      description: ABOUT + errorList(),
      license: { name: 'MIT', identifier: 'MIT' },
    },
    servers: [{ url: '/' }],
    security: Object.keys(securitySchemes).map((name) => ({ [name]: [] })),
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths: {
      ...jobOperations(bands),
      ...filmOperations,
      ...gatewayOperations,
      ...gpuOperations(),
    },
    webhooks: { jobEnded },
    components: {
      schemas: componentSchemas(),
      responses: errorResponses(),
      parameters: sharedParameters,
      headers: sharedHeaders,
      securitySchemes,
    },
  };
}
