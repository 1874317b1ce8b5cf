import { Router } from 'express';
import { z } from 'zod';
import type { ZodOpenApiPathsObject } from 'zod-openapi';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success } from '../api/envelope.js';
import { answersWith } from '../api/openapi/answers.js';
import { parsedParameters } from '../api/parameters.js';
import { API_PATH } from '../run/api-path.js';
import { RunRemovalError, type RunRemover } from './run-remover.js';

const querySchema = z.object({
  with_shared: z.enum(['true', 'false']).default('false').meta({
    description: 'true removes runs that share its trace, too: a trace is removed as a whole',
  }),
});

const removedSchema = z.object({
  removed_run_ids: z.array(z.number().int()).meta({ description: 'the run, and those that shared its trace' }),
});

/** Serves `DELETE /runs/{id}`. */
export function removalRouter(remover: Pick<RunRemover, 'remove'>): Router {
  const router = Router();
  router.delete(`${API_PATH}/runs/:id`, authorize('runs:delete'), async (request, response) => {
    const { with_shared: withShared } = parsedParameters(querySchema, request.query);
    const { accountId } = callerOf(response);
    const ids = await orConflict(remover.remove(accountId, String(request.params.id), withShared === 'true'));
    response.json(success({ removed_run_ids: ids }));
  });
  return router;
}

/** The API description of the router. */
export const REMOVAL_PATHS: ZodOpenApiPathsObject = {
  [`${API_PATH}/runs/{id}`]: {
    delete: {
      tags: ['run-bridge: runs'],
      summary: 'Removes a run with all its data; 409 while it goes on, or a destination waits for it',
      requestParams: {
        path: z.object({
          id: z.string().meta({ description: "the run's number, or a trace or invocation id of one of its commands" }),
        }),
        query: querySchema,
      },
      responses: answersWith(removedSchema, 'It is gone.', [404, 409]),
    },
  },
};

/** Waits for a removal. @throws ApiError 409 instead of a RunRemovalError */
export async function orConflict<T>(removing: Promise<T>): Promise<T> {
  try {
    return await removing;
  } catch (error) {
    if (error instanceof RunRemovalError) throw new ApiError(409, error.message, {}, { cause: error });
    throw error;
  }
}
