import type { EngineOutcome } from './engine-outcome.js';

/** A status as the run results of the previous major version have it. */
export type PreviousStatus = 'success' | 'error' | 'skipped' | 'pass' | 'warn' | 'fail';

const TEST_STATUS = { passed: 'pass', warned: 'warn', failed: 'fail' } as const;

/**
 * The previous major version's status of a node, by the mapping table of the telemetry's documentation: `node_outcome`,
 * for tests that ran `test_outcome`, for skipped nodes `node_skip_reason`.
 * @returns `null` for what the table does not have: canceled nodes, nodes without an outcome, and those that were skipped
 *   for another reason than `upstream`; `cached` has no equivalent there.
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
      return skipReason === 'upstream' ? 'skipped' : null;
    default:
      return null;
  }
}
