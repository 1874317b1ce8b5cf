import { Router } from 'express';
import type { Logger } from '../../component/logger.js';
import { parseRunNumber } from '../../store/run-number.js';
import { ApiError } from '../api-error.js';
import { V2_PATH } from '../api-router.js';
import { toArtifactApiError } from '../artifact/artifact-errors.js';
import { readArtifactParameter } from '../artifact/artifact-parameter.js';
import type { RunArtifacts } from '../artifact/run-artifacts.js';
import { sendArtifact } from '../artifact/send-artifact.js';
import { findStep, readStepParameter } from '../artifact/step-parameter.js';
import { telemetryPlaceOf } from '../artifact/telemetry-path.js';
import { authorize, callerOf } from '../authenticate.js';
import { success } from '../envelope.js';

/** What the router works with. */
export interface ArtifactRouterDeps {
  readonly artifacts: RunArtifacts;
  readonly logger: Logger;
}

/** `…/runs/{id}/artifacts/` and `…/runs/{id}/artifacts/{path}`: what a step left, by `?step=N`; the last step's without. */
export function artifactRouter({ artifacts, logger }: ArtifactRouterDeps): Router {
  const router = Router();
  const base = `${V2_PATH}/accounts/:accountId/runs/:runId/artifacts`;
  router.get(base, authorize('artifacts:read'), async (request, response) => {
    const steps = await stepsOf(callerOf(response).accountId, request.params.runId);
    const index = readStepParameter(request.query.step);
    const step = findStep(steps, index);
    // A run whose steps have not begun has nothing yet, and is no error.
    if (step === undefined && index !== null) throw ApiError.notFound();
    const paths = step === undefined ? [] : await artifacts.list(step).catch(fail);
    response.json(success(paths.length === 0 ? null : paths));
  });
  router.get(`${base}/*path`, authorize('artifacts:read'), async (request, response) => {
    const steps = await stepsOf(callerOf(response).accountId, request.params.runId);
    const path = readArtifactParameter(request.params.path);
    if (path === undefined) throw ApiError.notFound();
    // Which step's telemetry is meant, its name says.
    const index = readStepParameter(request.query.step) ?? telemetryPlaceOf(path)?.stepIndex ?? null;
    const step = findStep(steps, index);
    const artifact = step && (await artifacts.stat(step, path).catch(fail));
    if (step === undefined || artifact === undefined) throw ApiError.notFound();
    const open = (range?: Parameters<RunArtifacts['open']>[2]) => artifacts.open(step, path, range).catch(fail);
    await sendArtifact(request, response, { artifact, open });
  });
  return router;

  async function stepsOf(accountId: number, runId: unknown) {
    const id = parseRunNumber(runId);
    const steps = id === undefined ? undefined : await artifacts.stepsOf(accountId, id);
    if (steps === undefined) throw ApiError.notFound();
    return steps;
  }

  function fail(error: unknown): never {
    throw toArtifactApiError(error, logger);
  }
}
