import express, { Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import type { Caller } from '../api/caller.js';
import { success } from '../api/envelope.js';
import { answersWith } from '../api/openapi/answers.js';
import { parsedParameters } from '../api/parameters.js';
import { API_PATH } from '../run/api-path.js';
import { Layout, sendPage } from '../web/page/layout.js';
import { RunResendError, type RunResender } from './run-resender.js';

const querySchema = z.object({
  to: z.string().optional().meta({ description: 'name of a destination; left out: all' }),
});

const resentSchema = z.object({
  run_id: z.number().int(),
  destinations: z.array(z.string()).meta({ description: 'names of those that get it' }),
});

/** Serves `POST /runs/{id}/export`. */
export function resendRouter(resender: Pick<RunResender, 'resend'>): Router {
  const router = Router();
  router.post(`${API_PATH}/runs/:id/export`, authorize('jobs:run'), async (request, response) => {
    const { to = null } = parsedParameters(querySchema, request.query);
    const { accountId } = callerOf(response);
    const { runId, destinations } = await orConflict(resender.resend(accountId, String(request.params.id), to));
    response.json(success({ run_id: runId, destinations }));
  });
  return router;
}

/** What the router answers. */
export const RESEND_PATHS: ZodOpenApiPathsObject = {
  [`${API_PATH}/runs/{id}/export`]: {
    post: {
      tags: ['run-bridge: runs'],
      summary: 'Sends a run to destinations again, from its first record; 409 where there is none',
      requestParams: {
        path: z.object({
          id: z.string().meta({ description: "the run's number, or a trace or invocation id of one of its commands" }),
        }),
        query: querySchema,
      },
      responses: answersWith(resentSchema, 'It is on its way.', [404, 409]),
    },
  },
};

/** @throws ApiError 409 in place of a RunResendError */
async function orConflict<T>(resending: Promise<T>): Promise<T> {
  try {
    return await resending;
  } catch (error) {
    if (error instanceof RunResendError) throw new ApiError(409, error.message, {}, { cause: error });
    throw error;
  }
}

const MAX_FORM_BYTES = 4_096;

/** Serves the form of `/runs/{id}/export`: sends a run to destinations again, which a button on its page asks for. */
export function resendPages(resender: Pick<RunResender, 'resend'>, version: string): Router {
  const router = Router();
  const form = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES });
  router.post('/runs/:runId/export', authorize('jobs:run'), form, async (request, response) => {
    const caller = callerOf(response);
    const to: unknown = request.body?.destination;
    const destination = typeof to === 'string' && to !== '' ? to : null;
    const sent = await orConflict(resender.resend(caller.accountId, String(request.params.runId), destination));
    await sendPage(response, <SentPage {...{ ...sent, caller, version }} />);
  });
  return router;
}

function SentPage(props: {
  readonly runId: number;
  readonly destinations: readonly string[];
  readonly caller: Caller;
  readonly version: string;
}) {
  const { runId, destinations, caller, version } = props;
  const title = `Run #${runId} is sent again`;
  return (
    <Layout title={title} caller={caller} version={version}>
      <h1>{title}</h1>
      <p class="notice good" role="status">
        <span class="strong">{destinations.join(', ')}</span> {destinations.length === 1 ? 'gets' : 'get'} it from its
        first record on. How far that is, Settings and <code>/readyz?verbose</code> say.
      </p>
      <p>
        <a href={`/runs/${runId}`}>Back to the run</a>
      </p>
    </Layout>
  );
}
