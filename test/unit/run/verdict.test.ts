import { describe, expect, it } from 'vitest';
import { type VerdictEvidence, verdictOf } from '../../../src/run/verdict.js';

const none = { success: 0, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };
const ended: VerdictEvidence = {
  hasInvocationEnd: true,
  hasProcessEnd: true,
  status: { message: null, code: 1 },
  totalErrors: 0,
  rawCommand: null,
  nodeCounts: { ...none, success: 3 },
  firstFailure: null,
  interruptedAtUnixNano: null,
  hasCancelMessage: false,
  errorLogCount: 0,
  isBareProcess: false,
  isStopped: false,
};
const second = 1_000_000_000n;

describe('the verdict of an invocation', () => {
  it('is success when nothing failed, and error when its span, its nodes or its metrics say so', () => {
    expect(verdictOf(ended)).toEqual({ verdict: 'success', statusMessage: null });
    expect(verdictOf({ ...ended, status: { message: 'Executed with errors', code: 2 } })).toEqual({
      verdict: 'error',
      statusMessage: 'Executed with errors',
    });
    expect(verdictOf({ ...ended, nodeCounts: { ...none, failed: 1 } })).toMatchObject({
      verdict: 'error',
      statusMessage: '1 node failed',
    });
    expect(verdictOf({ ...ended, totalErrors: 2 })).toMatchObject({ verdict: 'error', statusMessage: '2 errors' });
  });

  it('is lost only when neither span ended, whatever else is known', () => {
    const silent = { ...ended, hasInvocationEnd: false, hasProcessEnd: false, status: null };
    expect(verdictOf({ ...silent, hasCancelMessage: true }).verdict).toBe('lost');
    expect(verdictOf({ ...silent, hasProcessEnd: true }).verdict).toBe('success');
  });

  it('is canceled after an interrupt even when the engine ended in good order and counted errors', () => {
    const interrupted = {
      ...ended,
      status: { message: 'Executed with errors', code: 2 },
      totalErrors: 3,
      nodeCounts: { ...none, success: 14, canceled: 2 },
      interruptedAtUnixNano: 5n * second,
      hasCancelMessage: true,
      rawCommand: 'dbt build --fail-fast',
    };
    expect(verdictOf(interrupted)).toEqual({ verdict: 'canceled', statusMessage: 'Interrupted: 2 nodes canceled' });
    // As while the project is parsed.
    const early = { ...interrupted, nodeCounts: none };
    expect(verdictOf(early)).toEqual({ verdict: 'canceled', statusMessage: 'Interrupted: no node was running' });
  });

  it('is an error when the work was cut short right after a failure, or fail-fast was asked for', () => {
    const cut = {
      ...ended,
      hasInvocationEnd: false,
      status: null,
      nodeCounts: { ...none, failed: 1, canceled: 1 },
      firstFailure: { uniqueId: 'test.shop.t', timeUnixNano: 10n * second },
      interruptedAtUnixNano: 10n * second + 4_000_000n,
      hasCancelMessage: true,
    };
    // A variable may ask for it, too, and somebody may have stopped it just then.
    expect(verdictOf(cut)).toEqual({
      verdict: 'error',
      statusMessage: 'Stopped by fail-fast or by somebody after test.shop.t failed: 1 node canceled',
    });
    expect(verdictOf({ ...cut, rawCommand: 'dbt build --fail-fast' })).toEqual({
      verdict: 'error',
      statusMessage: 'Stopped by fail-fast after test.shop.t failed: 1 node canceled',
    });
    expect(verdictOf({ ...cut, isStopped: true, rawCommand: 'dbt build' })).toEqual({
      verdict: 'canceled',
      statusMessage: 'Interrupted: 1 node canceled',
    });
    const reported = (nodeCounts: Partial<typeof none>) =>
      verdictOf({ ...cut, nodeCounts: { ...none, failed: 1, ...nodeCounts } }).statusMessage;
    expect(reported({ unfinished: 3 })).toMatch(/: 3 nodes not finished$/);
    expect(reported({ canceled: 1, unfinished: 2 })).toMatch(/: 1 node canceled, 2 not finished$/);
    const later = { ...cut, interruptedAtUnixNano: 12n * second };
    expect(verdictOf(later).verdict).toBe('canceled');
    expect(verdictOf({ ...later, rawCommand: 'dbt build -x --target prod' }).verdict).toBe('error');
  });

  it('without the invocation span goes by the nodes and the error messages', () => {
    const headless = { ...ended, hasInvocationEnd: false, status: null, totalErrors: null };
    expect(verdictOf(headless)).toMatchObject({
      verdict: 'success',
      statusMessage: expect.stringContaining('no node failed'),
    });
    expect(verdictOf({ ...headless, errorLogCount: 1 }).verdict).toBe('error');
    expect(verdictOf({ ...headless, nodeCounts: { ...none, unfinished: 1 } }).verdict).toBe('error');
  });

  it('is an error when the process ended before a command began, as it does outside a project', () => {
    const bare = { ...ended, hasInvocationEnd: false, status: null, totalErrors: null, nodeCounts: none };
    expect(verdictOf({ ...bare, isBareProcess: true })).toEqual({
      verdict: 'error',
      statusMessage: 'The process ended before any command began',
    });
  });

  it('is not canceled by a canceled query alone when the invocation ended well', () => {
    expect(verdictOf({ ...ended, interruptedAtUnixNano: second }).verdict).toBe('success');
  });
});
