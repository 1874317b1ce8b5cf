import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { answersWith, envelopeSchema, errorAnswers, jsonAnswer } from '../api/openapi/answers.js';
import { API_PATH } from '../run/api-path.js';
import { ARTIFACT_CONTENT_TYPES, jobRunsSchema } from './downloads.js';

const runId = z.string();
const path = z.string().meta({ description: 'names with / between them: target/manifest.json' });
const step = z.string().optional().meta({ description: 'the step, from 1; the last one when left out' });
const RUN = '/api/v2/accounts/{accountId}/runs/{runId}/artifacts';
/** The content types of artifacts; an unknown one is bytes. */
const BYTES = Object.fromEntries(
  ARTIFACT_CONTENT_TYPES.map((type) => [type.replace(/;.*$/, ''), { schema: z.unknown() }]),
);

/** Describes the GET of a file. */
function download(
  summary: string,
  of: { readonly tag: string; readonly path: z.ZodObject; readonly query: z.ZodObject },
): ZodOpenApiPathsObject[string] {
  return {
    get: {
      tags: [of.tag],
      summary,
      requestParams: {
        path: of.path,
        query: of.query,
        header: z.object({ Range: z.string().optional(), 'If-None-Match': z.string().optional() }),
      },
      responses: {
        200: { description: 'The file, without an envelope.', content: BYTES },
        206: { description: 'The part that Range asks for.', content: BYTES },
        304: { description: 'The same as the one that the caller has.' },
        ...errorAnswers(404, 416),
      },
    },
  };
}

/** The API description of artifacts. */
export const ARTIFACT_PATHS: ZodOpenApiPathsObject = {
  [RUN]: {
    get: {
      tags: ['v2: artifacts'],
      summary: 'Paths of what a step left',
      requestParams: { path: z.object({ accountId: z.string(), runId }), query: z.object({ step }) },
      responses: answersWith(z.array(z.string()), 'Paths.', [404]),
    },
  },
  [`${RUN}/{path}`]: download('An artifact, or a part of it', {
    tag: 'v2: artifacts',
    path: z.object({ accountId: z.string(), runId, path }),
    query: z.object({ step }),
  }),
  '/api/v2/accounts/{accountId}/jobs/{jobId}/artifacts/{path}': download(
    "An artifact of a job's latest run that is over",
    {
      tag: 'v2: artifacts',
      path: z.object({ accountId: z.string(), jobId: z.string(), path }),
      query: z.object({ step }),
    },
  ),
  [`${API_PATH}/artifacts/{path}`]: download(
    "An artifact of a job's newest run that has it; Content-Location says which",
    {
      tag: 'run-bridge: artifacts',
      path: z.object({ path }),
      query: jobRunsSchema,
    },
  ),
  [`${API_PATH}/runs/{runId}/artifacts/{path}`]: {
    put: {
      tags: ['run-bridge: artifacts'],
      summary: 'Keeps the body as an artifact of a step, in place of an earlier one',
      requestParams: { path: z.object({ runId, path }), query: z.object({ step: z.string() }) },
      requestBody: { required: true, content: { 'application/octet-stream': { schema: z.string() } } },
      responses: {
        201: jsonAnswer(
          envelopeSchema(z.object({ path: z.string(), step: z.number().int(), size_bytes: z.number().int() })),
          'Kept.',
        ),
        ...errorAnswers(404, 409, 413, 415, 507),
      },
    },
  },
};
