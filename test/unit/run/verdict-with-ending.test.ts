import { describe, expect, it } from 'vitest';
import { type VerdictEvidence, type VerdictWithReason, withEnding } from '../../../src/run/verdict.js';
import type { CommandEnding } from '../../../src/storage/steps.js';

type Evidence = Pick<VerdictEvidence, 'hasInvocationEnd' | 'hasProcessEnd' | 'nodeCounts'>;

const counts = { success: 3, warned: 0, failed: 0, error: 0, canceled: 0, skipped: 0, unfinished: 0 };
const silent: Evidence = { hasInvocationEnd: false, hasProcessEnd: false, nodeCounts: { ...counts, unfinished: 12 } };
const whole: Evidence = { hasInvocationEnd: true, hasProcessEnd: true, nodeCounts: counts };
const LOST: VerdictWithReason = { verdict: 'lost', statusMessage: 'No end was seen' };
const SUCCESS: VerdictWithReason = { verdict: 'success', statusMessage: null };
const FAILED: VerdictWithReason = { verdict: 'error', statusMessage: '2 nodes failed' };

function exited(exitCode: number): CommandEnding {
  return { kind: 'exited', exitCode };
}
function killed(signal: string): CommandEnding {
  return { kind: 'killed', signal };
}

describe('a verdict, when it is known how the command ended', () => {
  it.each([
    [killed('SIGKILL'), 'error', 'The command was killed by SIGKILL; 12 nodes had not ended'],
    [killed('SIGSEGV'), 'error', 'The command was killed by SIGSEGV; 12 nodes had not ended'],
    [killed('SIGTERM'), 'canceled', 'The command was killed by SIGTERM; 12 nodes had not ended'],
    [exited(2), 'error', 'The command ended with exit code 2; 12 nodes had not ended'],
    [
      exited(137),
      'error',
      'The command ended with exit code 137 (as a shell says of a command killed by SIGKILL); 12 nodes had not ended',
    ],
    [
      exited(143),
      'canceled',
      'The command ended with exit code 143 (as a shell says of a command killed by SIGTERM); 12 nodes had not ended',
    ],
    [exited(0), 'lost', 'No end was seen; 12 nodes had not ended; the command ended with exit code 0'],
    [
      { kind: 'within' },
      'lost',
      'No end was seen; 12 nodes had not ended; the command ended inside a command that went on',
    ],
    [
      { kind: 'unknown' },
      'lost',
      'No end was seen: the program that ran the command has gone without reporting how it ended',
    ],
  ] as const)('is reported by it where the telemetry has no end: %j', (ending, verdict, statusMessage) => {
    expect(withEnding(LOST, silent, { ending, isSole: true })).toEqual({ verdict, statusMessage });
  });

  it('counts the nodes that were at work in words', () => {
    const message = (unfinished: number) =>
      withEnding(
        LOST,
        { ...silent, nodeCounts: { ...counts, unfinished } },
        { ending: killed('SIGKILL'), isSole: true },
      ).statusMessage;
    expect(message(1)).toBe('The command was killed by SIGKILL; 1 node had not ended');
    expect(message(0)).toBe('The command was killed by SIGKILL; no node was running');
  });

  it('is an error for failed nodes, whatever the exit code', () => {
    expect(withEnding(FAILED, whole, { ending: exited(0), isSole: true })).toEqual(FAILED);
    expect(withEnding(FAILED, whole, { ending: exited(1), isSole: true })).toEqual(FAILED);
    const nodeCounts = { ...counts, failed: 1 };
    expect(withEnding(LOST, { ...silent, nodeCounts }, { ending: exited(0), isSole: true })).toEqual({
      verdict: 'error',
      statusMessage: '1 node failed; the command ended with exit code 0, the end of its telemetry was not seen',
    });
  });

  it('is an error where the command failed that did nothing else, and stays a success in a script', () => {
    expect(withEnding(SUCCESS, whole, { ending: exited(3), isSole: true })).toEqual({
      verdict: 'error',
      statusMessage: 'The command ended with exit code 3, though its telemetry tells of no failure',
    });
    expect(withEnding(SUCCESS, whole, { ending: exited(3), isSole: false })).toEqual(SUCCESS);
    expect(withEnding(SUCCESS, whole, { ending: exited(0), isSole: true })).toEqual(SUCCESS);
  });

  it('says with an interrupt which signal ended the command', () => {
    const interrupted = { verdict: 'canceled', statusMessage: 'Interrupted: 2 nodes canceled' } as const;
    const evidence = { ...silent, hasProcessEnd: true };
    expect(withEnding(interrupted, evidence, { ending: killed('SIGINT'), isSole: true })).toEqual({
      verdict: 'canceled',
      statusMessage: 'Interrupted: 2 nodes canceled; the command was killed by SIGINT',
    });
    expect(withEnding(interrupted, evidence, { ending: exited(1), isSole: true })).toEqual(interrupted);
  });
});
