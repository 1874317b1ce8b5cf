import type { EngineOutcome } from './engine-outcome.js';

/** A status as the run results of the previous major version have it; `cached` did not exist there and stands for itself. */
export type PreviousStatus = 'success' | 'error' | 'skipped' | 'pass' | 'warn' | 'fail' | 'cached';

const TEST_STATUS = { passed: 'pass', warned: 'warn', failed: 'fail' } as const;

/**
 * The previous major version's status of a node, by the mapping table of the telemetry's documentation: `node_outcome`,
 * for tests that ran `test_outcome`, for skipped nodes `node_skip_reason`.
 * @returns `null` for what the table does not have: canceled nodes, nodes without an outcome, and those that were skipped
 *   for another reason than `upstream` and `cached`.
 */
export function previousStatusOf({
  outcome,
  skipReason,
  testOutcome,
}: Pick<EngineOutcome, 'outcome' | 'skipReason' | 'testOutcome'>): PreviousStatus | null {
  switch (outcome) {
    case 'success':
      return testOutcome === null ? 'success' : TEST_STATUS[testOutcome];
    case 'error':
      return 'error';
    case 'skipped':
      if (skipReason === 'upstream') return 'skipped';
      return skipReason === 'cached' ? 'cached' : null;
    default:
      return null;
  }
}
