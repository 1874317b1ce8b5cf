import { Router } from 'express';
import { createDocument } from 'zod-openapi';
import { API_PATHS } from './api-paths.js';

/** Describes the API; for everybody, since it says nothing of anybody's runs. @param version the program's */
export function openApiRouter(version: string): Router {
  const router = Router();
  const document = createDocument({
    openapi: '3.1.1',
    info: {
      title: 'run-bridge',
      version,
      description:
        "Runs, artifacts and records of a data-transformation engine: the hosted platform's v2 API, and an API of its own.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ token: [] }, { bearer: [] }],
    paths: API_PATHS,
    components: {
      securitySchemes: {
        token: { type: 'apiKey', in: 'header', name: 'Authorization', description: 'Authorization: Token <token>' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
    },
  });
  router.get('/api/openapi.json', (_request, response) => {
    response.json(document);
  });
  return router;
}
