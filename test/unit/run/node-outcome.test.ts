import { describe, expect, it } from 'vitest';
import { Attributes, type JsonObject } from '../../../src/record/attributes.js';
import type { SpanStatus } from '../../../src/record/telemetry-record.js';
import { freshnessOutcomeOf, interruptionOf, nodeVerdictOf, testOutcomeOf } from '../../../src/run/node-outcome.js';
import { countVerdicts } from '../../../src/run/verdict.js';
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

  it('goes by the status of the span where the outcome is missing', () => {
    expect(verdict({}, 'none', { message: 'error', code: 2 })).toBe('error');
    expect(verdict({})).toBe('unfinished');
    expect(verdict({ node_outcome: 'NODE_OUTCOME_UNSPECIFIED' })).toBe('unfinished');
  });

  it("is a newer engine's own word where this version does not know the outcome, and an error where the span says so", () => {
    expect(verdict({ node_outcome: 'NODE_OUTCOME_DEFERRED' })).toBe('deferred');
    expect(verdict({ node_outcome: 'Partial success' })).toBe('partial_success');
    expect(verdict({ node_outcome: `NODE_OUTCOME_${'X'.repeat(100)}` })).toBe('x'.repeat(40));
    expect(verdict({ node_outcome: 'NODE_OUTCOME_DEFERRED' }, 'none', { message: null, code: 2 })).toBe('error');
    expect(verdict({ node_outcome: 'NODE_OUTCOME_DEFERRED' }, 'hard')).toBe('canceled');
  });

  it('is counted by its word, 16 words of the engine at most', () => {
    const words = ['deferred', 'deferred', 'constructor', ...Array.from({ length: 20 }, (_, index) => `word_${index}`)];
    const counts = countVerdicts(words.map((word) => ({ verdict: verdict({ node_outcome: word }) })));
    expect(counts).toMatchObject({ success: 0, deferred: 2, constructor: 1, word_13: 1, other: 6 });
    expect(Object.keys(counts)).toHaveLength(7 + 16 + 1);
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
