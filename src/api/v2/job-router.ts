import { Router } from 'express';
import type { JobQuery } from '../../storage/run-catalog.js';
import { ApiError } from '../api-error.js';
import { V2_PATH } from '../api-router.js';
import { authorize, callerOf } from '../authenticate.js';
import { success, successList } from '../envelope.js';
import { among } from './among.js';
import { idIn } from './id-in.js';
import { jobDocument } from './job-document.js';
import { listPart } from './list-parameters.js';
import { numberOf, numbersOf, type Parameters } from './query-values.js';
import type { V2Deps } from './v2-deps.js';

const JOBS_PATH = `${V2_PATH}/accounts/:accountId/jobs`;
const ORDERS = { id: 'id', name: 'name', created_at: 'created', updated_at: 'updated' } as const;
/** The state of a job that is there; those that were deleted are not kept. */
const ACTIVE = 1;

/** Jobs, to look at. */
export function jobRouter({ catalog, factsOf }: Pick<V2Deps, 'catalog' | 'factsOf'>): Router {
  const router = Router();
  router.get(JOBS_PATH, authorize('jobs:read'), async (request, response) => {
    const { accountId } = callerOf(response);
    const { query, filters, order } = jobListQuery(accountId, request.query);
    const { items, totalCount } = await catalog.listJobs(accountId, query);
    const documents = items.map((job) => jobDocument(job, factsOf(job)));
    const pagination = { count: items.length, total_count: totalCount };
    response.json(successList(documents, { filters, order_by: order, pagination }));
  });
  router.get(`${JOBS_PATH}/:jobId`, authorize('jobs:read'), async (request, response) => {
    const job = await catalog.findJob(callerOf(response).accountId, idIn(request, 'jobId'));
    if (job === undefined) throw ApiError.notFound();
    response.json(success(jobDocument(job, factsOf(job))));
  });
  return router;
}

function jobListQuery(accountId: number, parameters: Parameters) {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, ORDERS);
  const projectId = numberOf(parameters, 'project_id');
  const projectsAmong = numbersOf(parameters, 'project_id__in');
  const environmentId = numberOf(parameters, 'environment_id');
  const state = numberOf(parameters, 'state');
  const name = parameters.name__icontains;
  const nameContains = typeof name === 'string' && name !== '' ? name : undefined;
  const projectIds = state === undefined || state === ACTIVE ? among(projectId, projectsAmong) : [];
  const query: JobQuery = {
    ...{ limit, offset, orderBy, isDescending },
    ...(projectIds !== undefined && { projectIds }),
    ...(environmentId !== undefined && { environmentId }),
    ...(nameContains !== undefined && { nameContains }),
  };
  const filters = {
    ...{ limit, offset, account_id: accountId },
    ...(projectId !== undefined && { project_id: projectId }),
    ...(projectsAmong !== undefined && { project_id__in: projectsAmong }),
    ...(environmentId !== undefined && { environment_id: environmentId }),
    ...(nameContains !== undefined && { name__icontains: nameContains }),
    ...(state !== undefined && { state }),
  };
  return { query, filters, order };
}
