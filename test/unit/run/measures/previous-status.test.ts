import { expect, it } from 'vitest';
import { Attributes } from '../../../../src/record/attributes.js';
import { engineOutcomeOf, previousStatusOf } from '../../../../src/run/measures/node-measure.js';

const statusOf = (attributes: Parameters<typeof Attributes.of>[0]) =>
  previousStatusOf(engineOutcomeOf(Attributes.of(attributes)));

it.each([
  ['success', { node_outcome: 'NODE_OUTCOME_SUCCESS' }],
  ['success', { node_outcome: 'success' }],
  ['error', { node_outcome: 'NODE_OUTCOME_ERROR' }],
  ['error', { node_outcome: 'NODE_OUTCOME_ERROR', node_test_detail: {} }],
  ['skipped', { node_outcome: 'NODE_OUTCOME_SKIPPED', node_skip_reason: 'NODE_SKIP_REASON_UPSTREAM' }],
  [null, { node_outcome: 'NODE_OUTCOME_SKIPPED', node_skip_reason: 'NODE_SKIP_REASON_CACHED' }],
  [null, { node_outcome: 'NODE_OUTCOME_SKIPPED', node_skip_reason: 'NODE_SKIP_REASON_PHASE_DISABLED' }],
  [null, { node_outcome: 'NODE_OUTCOME_SKIPPED', node_skip_reason: 'NODE_SKIP_REASON_NO_OP' }],
  [null, { node_outcome: 'NODE_OUTCOME_CANCELED' }],
  [null, { node_outcome: 'NODE_OUTCOME_UNSPECIFIED' }],
  [null, {}],
  ['pass', { node_outcome: 'NODE_OUTCOME_SUCCESS', node_test_detail: {} }],
  ['warn', { node_outcome: 'NODE_OUTCOME_SUCCESS', node_test_detail: { test_outcome: 'TEST_OUTCOME_WARNED' } }],
  ['fail', { node_outcome: 'success', test_outcome: 'failed' }],
])('is %s of %j', (status, attributes) => {
  expect(statusOf(attributes)).toBe(status);
});

it('a reason for skipping has the words of the documentation, one that is not known yet in its own', () => {
  const reasonOf = (node_skip_reason: string) =>
    engineOutcomeOf(Attributes.of({ node_outcome: 'skipped', node_skip_reason })).skipReason;
  expect(reasonOf('NODE_SKIP_REASON_NO_OP')).toBe('noop');
  expect(reasonOf('cached')).toBe('cached');
  expect(reasonOf('NODE_SKIP_REASON_PHASE_SKIPPED')).toBe('phase_skipped');
  expect(reasonOf('NODE_SKIP_REASON_MOON')).toBe('moon');
});
