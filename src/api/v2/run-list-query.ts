import type { RunQuery } from '../../store/run-catalog.js';
import type { RunStatus } from '../../store/run-status.js';
import { among } from './among.js';
import { listPart } from './list-parameters.js';
import { numberOf, numbersOf, type Parameters, rangeOf, refused, textsOf } from './query-values.js';
import { parseStatus } from './status-words.js';

/** A list of runs that was asked for. */
export interface RunListQuery {
  readonly query: RunQuery;
  /** What the answer says that it was filtered by. */
  readonly filters: Readonly<Record<string, unknown>> & { readonly limit: number; readonly offset: number };
  readonly order: string | null;
}

const ORDERS = { id: 'id', created_at: 'created', finished_at: 'finished' } as const;

/** Reads the parameters of a list of runs; those that there are not are ignored. @throws ApiError 400 */
export function runListQuery(accountId: number, parameters: Parameters): RunListQuery {
  const { limit, offset, orderBy, isDescending, order } = listPart(parameters, ORDERS);
  const [status] = statusesOf(parameters, 'status') ?? [];
  const statusesAmong = statusesOf(parameters, 'status__in');
  const jobId = numberOf(parameters, 'job_definition_id');
  const environmentId = numberOf(parameters, 'environment_id');
  const projectId = numberOf(parameters, 'project_id');
  const projectsAmong = numbersOf(parameters, 'project_id__in');
  const idAbove = numberOf(parameters, 'id__gt');
  const createdRange = rangeOf(parameters, 'created_at__range');
  const finishedRange = rangeOf(parameters, 'finished_at__range');
  const statuses = among(status, statusesAmong);
  const projectIds = among(projectId, projectsAmong);
  return {
    query: {
      ...{ orderBy, isDescending, limit, offset },
      ...(statuses !== undefined && { statuses }),
      ...(jobId !== undefined && { jobId }),
      ...(environmentId !== undefined && { environmentId }),
      ...(projectIds !== undefined && { projectIds }),
      ...(idAbove !== undefined && { idAbove }),
      ...(createdRange !== undefined && { createdRange }),
      ...(finishedRange !== undefined && { finishedRange }),
    },
    filters: {
      ...{ limit, offset, account_id: accountId },
      ...(status !== undefined && { status }),
      ...(statusesAmong !== undefined && { status__in: statusesAmong }),
      ...(jobId !== undefined && { job_definition_id: jobId }),
      ...(environmentId !== undefined && { environment_id: environmentId }),
      ...(projectId !== undefined && { project_id: projectId }),
      ...(projectsAmong !== undefined && { project_id__in: projectsAmong }),
      ...(idAbove !== undefined && { id__gt: idAbove }),
      ...(createdRange !== undefined && { created_at__range: textsOf(parameters, 'created_at__range') }),
      ...(finishedRange !== undefined && { finished_at__range: textsOf(parameters, 'finished_at__range') }),
    },
    order,
  };
}

/** An empty list is as if it had not come. */
function statusesOf(parameters: Parameters, name: string): readonly RunStatus[] | undefined {
  const statuses = textsOf(parameters, name)?.map((text) => {
    const status = parseStatus(text);
    if (status === undefined) throw refused(name, 'is not of 1, 2, 3, 10, 20, 30');
    return status;
  });
  return statuses?.length === 0 ? undefined : statuses;
}
