import { describe, expect, it } from 'vitest';
import type { SendResult } from '../../../src/export/destination.js';
import {
  type AnswerMeaning,
  ATTEMPTS_BEFORE_HALVING,
  ATTEMPTS_OF_ONE,
  MAX_FRUITLESS_HALVINGS,
  MAX_REFUSED_ALONE,
  meaningOf,
  nextStep,
} from '../../../src/export/signal-breaker.js';

const answer = (status: number | null, message = ''): SendResult =>
  status === null || status === 429 || status >= 500
    ? { kind: 'retryable', status, retryAfterMs: null, message }
    : { kind: 'refused', status, message };

describe('an answer', () => {
  it.each<readonly [AnswerMeaning, readonly (number | null)[]]>([
    ['later', [null, 429, 502, 503, 504]],
    ['closed', [301, 302, 307, 308, 401, 403, 404, 405, 407, 415, 421]],
    ['tooLarge', [413]],
    ['refused', [400, 422]],
    ['failed', [409, 418, 500, 501, 507, 599]],
  ])('means %s for %j', (meaning, statuses) => {
    expect(statuses.map((status) => meaningOf(answer(status)))).toEqual(statuses.map(() => meaning));
  });

  it.each([
    [400, 'http: request body too large'],
    [400, 'request body size exceeds the limit of 20971520 bytes'],
    [500, 'payload exceeded maximum size'],
    [500, 'rpc error: code = ResourceExhausted desc = grpc: received message larger than max (5000 vs. 4000)'],
    [503, 'grpc: received message after decompression larger than max 4194304'],
  ])('%i with the words "%s" is about size', (status, message) => {
    expect(meaningOf(answer(status, message))).toBe('tooLarge');
  });

  it.each([
    [400, 'no such tenant'],
    [400, 'span name is empty'],
    [503, 'queue size exceeded'],
    [429, 'rate limit exceeded'],
  ])('%i with the words "%s" is not', (status, message) => {
    expect(meaningOf(answer(status, message))).not.toBe('tooLarge');
  });
});

describe('what is done with a request', () => {
  const fresh = { refusedAlone: 0, halvings: 0 };
  const request = { itemCount: 10, failedAttempts: 1, isReceiverWell: true };

  it('never gives up for what is the state of the receiver', () => {
    for (const status of [null, 429, 503, 401, 404, 308]) {
      const often = { itemCount: 1, failedAttempts: 1_000, isReceiverWell: true };
      expect(nextStep(answer(status), often, fresh)).toBe('settle');
    }
  });

  it('halves what is too large or refused at once, and gives one record up', () => {
    for (const status of [413, 400]) {
      expect(nextStep(answer(status), request, fresh)).toBe('halve');
      expect(nextStep(answer(status), { ...request, itemCount: 1 }, fresh)).toBe('giveUp');
    }
  });

  it('gives a request up whole where record after record was refused alone', () => {
    expect(nextStep(answer(400), request, { ...fresh, refusedAlone: MAX_REFUSED_ALONE })).toBe('giveUp');
    expect(nextStep(answer(413), request, { ...fresh, refusedAlone: MAX_REFUSED_ALONE })).toBe('halve');
  });

  it('halves what fails after some attempts, and gives one record up only where others are taken', () => {
    const failed = answer(500);
    expect(nextStep(failed, request, fresh)).toBe('settle');
    const often = { ...request, failedAttempts: ATTEMPTS_BEFORE_HALVING };
    expect(nextStep(failed, often, fresh)).toBe('halve');
    expect(nextStep(failed, often, { ...fresh, halvings: MAX_FRUITLESS_HALVINGS })).toBe('settle');
    const alone = { itemCount: 1, failedAttempts: ATTEMPTS_OF_ONE, isReceiverWell: true };
    expect(nextStep(failed, alone, fresh)).toBe('giveUp');
    expect(nextStep(failed, { ...alone, isReceiverWell: false, failedAttempts: 1_000 }, fresh)).toBe('settle');
  });
});
