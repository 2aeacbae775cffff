import { createRequire } from 'node:module';
import path from 'node:path';
import { Router } from 'express';
import { GatewayError } from '../../errors.ts';
import { sendError } from '../error-response.ts';
import { setPageHeaders } from '../page-headers.ts';
import { sendJson } from '../send-json.ts';

const require = createRequire(import.meta.url);

const DOCUMENT = '/berth/openapi.json';
const DOCS = '/berth/docs';

const PAGE = `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>Berth API</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="${DOCS}/swagger-ui.css">
  </head>
  <body>
    <div id="api"></div>
    <script src="${DOCS}/swagger-ui-bundle.js"></script>
    <script src="${DOCS}/start.js"></script>
  </body>
</html>
`;

/** Asks nobody whether the document is valid, and takes no other document from the page's address. */
const START = `SwaggerUIBundle({
  url: ${JSON.stringify(DOCUMENT)},
  dom_id: '#api',
  deepLinking: true,
  defaultModelsExpandDepth: 0,
  validatorUrl: null,
});
`;

/** Of Swagger UI's files those that its page needs. */
const FILES: ReadonlySet<string> = new Set(['swagger-ui.css', 'swagger-ui-bundle.js']);

/** `GET /berth/openapi.json`, the document, and `GET /berth/docs`, Swagger UI over it. */
export function apiRoutes(document: object): Router {
  const folder = path.dirname(require.resolve('swagger-ui-dist/package.json'));
  const router = Router({ caseSensitive: true, strict: true });
  router.get('/openapi.json', (request, response) => {
    sendJson(request, response, 200, document);
  });
  router.get('/docs', (_request, response) => {
    setPageHeaders(response);
    response.setHeader('Cache-Control', 'no-cache');
    response.type('html').send(PAGE);
  });
  router.get('/docs/:file', (request, response) => {
    const { file } = request.params;
    setPageHeaders(response);
    response.setHeader('Cache-Control', 'private, no-cache');
    if (file === 'start.js') response.type('js').send(START);
    else if (FILES.has(file)) response.sendFile(file, { root: folder, cacheControl: false });
    else sendError(response, new GatewayError('job_not_found', 'there is nothing at this path'));
  });
  return router;
}
