import { Router } from 'express';
import { z } from 'zod';
import { createDocument, type ZodOpenApiPathsObject } from 'zod-openapi';
import { API_PATH } from '../../run/api-path.js';
import {
  apiErrorSchema,
  artifactsEndSchema,
  cancellationSchema,
  expectedArtifactsSchema,
  finishSchema,
  stepEndSchema,
  stepPositionSchema,
  stepStartSchema,
} from '../../run/execution-api.js';
import { NATIVE_PATHS } from '../native/native-paths.js';
import { jsonAnswer } from './answers.js';

const STEPS = `${API_PATH}/executions/steps/{stepId}`;
const TAGS = ['run-bridge: commands run elsewhere'];
const stepId = z.string().meta({ description: 'yours: 1 to 100 letters, digits or _ . : -' });
const path = z.object({ stepId });

const problems = {
  400: jsonAnswer(apiErrorSchema, 'What is wrong with the request.'),
  401: jsonAnswer(apiErrorSchema, 'This address requires a valid token.'),
  403: jsonAnswer(apiErrorSchema, 'The token may not send telemetry, so it may not report runs either.'),
  404: jsonAnswer(apiErrorSchema, 'Not known.'),
  413: jsonAnswer(apiErrorSchema, 'The body is larger than it may be.'),
  415: jsonAnswer(apiErrorSchema, 'The body is no JSON.'),
  429: jsonAnswer(apiErrorSchema, 'Too many failed tries; Retry-After says when to try again.'),
  500: jsonAnswer(apiErrorSchema, 'A fault of the bridge; its log says why.'),
  503: jsonAnswer(apiErrorSchema, 'May be tried again.'),
};
/** Where telemetry needs no token, this needs none either. */
const security = [{}, { token: [] }, { bearer: [] }];
const body = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema } } });

/** Responses without a token or outside of the guarded API: the identity, and the registry of commands. */
export const BRIDGE_PATHS: ZodOpenApiPathsObject = {
  '/api/openapi.json': {
    get: {
      tags: ['run-bridge: itself'],
      summary: 'This description',
      security: [],
      responses: { 200: jsonAnswer(z.looseObject({ openapi: z.string() }), 'OpenAPI 3.1.') },
    },
  },
  [API_PATH]: {
    get: {
      tags: ['run-bridge: itself'],
      summary: 'Who answers here, and where its other port is',
      security: [],
      responses: {
        200: jsonAnswer(
          z.object({
            name: z.literal('run-bridge'),
            version: z.string(),
            port: z.enum(['otlp', 'web']),
            otlp_url: z.string(),
            web_url: z.string(),
            public_url: z.string().nullable(),
            exports_to: z.array(z.string()),
            sign_in_links: z.boolean(),
          }),
          'About this bridge.',
        ),
      },
    },
  },
  [STEPS]: {
    put: {
      tags: TAGS,
      security,
      summary: 'A step began, or is still under way',
      requestParams: { path },
      requestBody: body(stepStartSchema),
      responses: { 200: jsonAnswer(stepPositionSchema.in, 'Its run and its place there.'), ...problems },
    },
  },
  [`${STEPS}/traces/{traceId}`]: {
    put: {
      tags: TAGS,
      security,
      summary: 'A trace holds records of the step',
      requestParams: { path: z.object({ stepId, traceId: z.string() }) },
      responses: { 204: { description: 'Noted.' }, ...problems },
    },
  },
  [`${STEPS}/end`]: {
    put: {
      tags: TAGS,
      security,
      summary: 'A step ended, and all its records were handed over',
      requestParams: { path },
      requestBody: body(stepEndSchema),
      responses: { 204: { description: 'Noted.' }, ...problems },
    },
  },
  [`${STEPS}/artifacts`]: {
    put: {
      tags: TAGS,
      security,
      summary: 'Artifacts of the step are about to be uploaded: its run is not over before they can be downloaded',
      requestParams: { path },
      requestBody: body(expectedArtifactsSchema),
      responses: { 204: { description: 'Noted.' }, ...problems },
    },
  },
  [`${STEPS}/artifacts/end`]: {
    put: {
      tags: TAGS,
      security,
      summary: 'No more artifacts of the step are uploaded; those that are missing are noted on the run',
      requestParams: { path },
      requestBody: body(artifactsEndSchema),
      responses: { 204: { description: 'Noted.' }, ...problems },
    },
  },
  [`${STEPS}/cancellation`]: {
    get: {
      tags: TAGS,
      security,
      summary: 'Whether the step is to be interrupted, since its run was canceled',
      requestParams: { path },
      responses: { 200: jsonAnswer(cancellationSchema, 'Whether it is.'), ...problems },
    },
  },
  [`${API_PATH}/executions/finish`]: {
    post: {
      tags: TAGS,
      security,
      summary: 'A run takes no more steps',
      requestBody: body(finishSchema),
      responses: {
        200: jsonAnswer(
          z.looseObject({ kind: z.enum(['finished', 'closing', 'already_finished']), run: z.looseObject({}) }),
          'What became of the wish.',
        ),
        ...problems,
      },
    },
  },
};

/**
 * Every path of the API but those of features. A router is described beside it, in a `…-paths.ts`, and that is named here; a
 * test fails for a route that is mounted and not described, and for one that is described and not mounted.
 */
const API_PATHS: ZodOpenApiPathsObject = {
  ...BRIDGE_PATHS,
  ...NATIVE_PATHS,
};

/** Describes the API; public, since it contains no data. @param version the program's @param featurePaths the routes of features */
export function openApiRouter(version: string, featurePaths: readonly ZodOpenApiPathsObject[]): Router {
  const router = Router();
  const document = createDocument({
    openapi: '3.1.1',
    info: {
      title: 'run-bridge',
      version,
      description:
        "Runs, artifacts and records of dbt 2 (dbt, dbt-oss): the hosted platform's v2 API, and an API of its own.",
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    security: [{ token: [] }, { bearer: [] }],
    paths: mergedPaths([API_PATHS, ...featurePaths]),
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

/** Merges the paths of several routers; one that several have has the methods of all. */
export function mergedPaths(all: readonly ZodOpenApiPathsObject[]): ZodOpenApiPathsObject {
  const merged: ZodOpenApiPathsObject = {};
  for (const paths of all) {
    for (const [path, methods] of Object.entries(paths)) merged[path] = { ...merged[path], ...methods };
  }
  return merged;
}
