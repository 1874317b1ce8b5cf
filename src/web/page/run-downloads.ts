import type { Caller } from '../../api/caller.js';
import { may } from '../../api/permissions.js';
import { encodedArtifactPath } from '../../storage/artifact/artifact-path.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import type { PageDeps } from './page-deps.js';

/** A file of a step. */
export interface Download {
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  /** Below the step's artifacts, such as `run_results.json`. */
  readonly path: string;
  /** Where the API has it. */
  readonly href: string;
}

/** What a run has to download; `null` where the caller may not, `unreadable` where the store does not answer. */
export async function runDownloads(
  caller: Caller,
  steps: readonly CatalogStep[],
  { artifacts, logger }: Pick<PageDeps, 'artifacts' | 'logger'>,
): Promise<readonly Download[] | 'unreadable' | null> {
  if (!may(caller, 'artifacts:read')) return null;
  try {
    const lists = await Promise.all(steps.map(async (step) => ({ step, paths: await artifacts.list(step) })));
    return lists.flatMap(({ step: { accountId, runId, index }, paths }) =>
      paths.map((path) => {
        const href = `/api/v2/accounts/${accountId}/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${index}`;
        return { stepIndex: index, path, href };
      }),
    );
  } catch (error) {
    // The run is shown all the same.
    logger.error({ error: String(error) }, 'failed to list artifacts');
    return 'unreadable';
  }
}
