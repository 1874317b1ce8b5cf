import { describe, expect, it } from 'vitest';
import { Attributes } from '../../../src/record/attributes.js';
import type { JsonObject } from '../../../src/record/json.js';
import type { SpanStatus } from '../../../src/record/telemetry-record.js';
import { freshnessOutcomeOf, interruptionOf, nodeVerdictOf, testOutcomeOf } from '../../../src/run/node-outcome.js';
import { fromJsonl } from './logged-samples.js';

const ok: SpanStatus = { message: null, code: 1 };

function verdict(attributes: JsonObject, interruption: 'none' | 'query' | 'hard' = 'none', status = ok) {
  return nodeVerdictOf({ attributes: Attributes.of(attributes), status }, interruption);
}

describe('what became of a node', () => {
  it.each([
    [{ node_outcome: 'NODE_OUTCOME_SUCCESS' }, 'success'],
    [{ node_outcome: 'NODE_OUTCOME_ERROR' }, 'error'],
    [{ node_outcome: 'NODE_OUTCOME_CANCELED' }, 'canceled'],
    [{ node_outcome: 'NODE_OUTCOME_SKIPPED', node_skip_reason: 'NODE_SKIP_REASON_NO_OP' }, 'skipped'],
    [{ node_outcome: 'NODE_OUTCOME_SUCCESS', node_test_detail: {} }, 'success'],
    [{ node_outcome: 'NODE_OUTCOME_SUCCESS', node_test_detail: { test_outcome: 'TEST_OUTCOME_WARNED' } }, 'warned'],
    [{ node_outcome: 'NODE_OUTCOME_SUCCESS', node_test_detail: { test_outcome: 'TEST_OUTCOME_FAILED' } }, 'failed'],
    [
      {
        node_outcome: 'NODE_OUTCOME_SUCCESS',
        node_freshness_outcome: { node_freshness_outcome: 'SOURCE_FRESHNESS_OUTCOME_OUTCOME_WARNED' },
      },
      'warned',
    ],
    [
      {
        node_outcome: 'NODE_OUTCOME_SUCCESS',
        node_outcome_detail: { NodeTestDetail: { test_outcome: 'TEST_OUTCOME_FAILED' } },
      },
      'failed',
    ],
    [{ node_outcome: 'success', test_outcome: 'failed' }, 'failed'],
    [{ node_outcome: 'skipped' }, 'skipped'],
  ])('reads %j as %s', (attributes, expected) => {
    expect(verdict(attributes)).toBe(expected);
  });

  it('goes by the status of the span where the outcome is missing or unknown', () => {
    expect(verdict({}, 'none', { message: 'error', code: 2 })).toBe('error');
    expect(verdict({ node_outcome: 'NODE_OUTCOME_NEW' })).toBe('unfinished');
  });

  it('is canceled by a log message of its interruption, whatever the engine reports', () => {
    expect(verdict({ node_outcome: 'NODE_OUTCOME_SUCCESS', last_phase: 'EXECUTION_PHASE_RENDER' }, 'hard')).toBe(
      'canceled',
    );
    expect(verdict({ node_outcome: 'NODE_OUTCOME_ERROR' }, 'hard')).toBe('canceled');
    expect(nodeVerdictOf(null, 'hard')).toBe('canceled');
  });

  it('is not canceled by a canceled query when it ran through afterwards', () => {
    const success = { node_outcome: 'NODE_OUTCOME_SUCCESS' };
    expect(verdict({ ...success, last_phase: 'EXECUTION_PHASE_RUN' }, 'query')).toBe('success');
    expect(verdict({ ...success, last_phase: 'EXECUTION_PHASE_ANALYZE' }, 'query')).toBe('canceled');
  });

  it('is unfinished when its span never ended and nothing says why', () => {
    expect(nodeVerdictOf(null, 'none')).toBe('unfinished');
  });
});

it('says nothing of tests or freshness where the node is neither', () => {
  const attributes = Attributes.of({ node_outcome: 'NODE_OUTCOME_SUCCESS' });
  expect(testOutcomeOf(attributes)).toBeUndefined();
  expect(freshnessOutcomeOf(attributes)).toBeUndefined();
});

it('finds every sign of an interruption in a real run', () => {
  const signs = fromJsonl('interrupted').flatMap(({ record }) => interruptionOf(record) ?? []);
  expect(signs).toEqual([
    { kind: 'query', uniqueId: 'model.shop.slow_b' },
    { kind: 'query', uniqueId: 'model.shop.slow_a' },
    { kind: 'task', uniqueId: 'model.shop.slow_b' },
    { kind: 'task', uniqueId: 'model.shop.slow_a' },
    { kind: 'operation', uniqueId: null },
  ]);
  expect(fromJsonl('build-mixed').flatMap(({ record }) => interruptionOf(record) ?? [])).toEqual([]);
});
