import { expect, test } from 'vitest';
import { RefusalLog, RequestError, refusalOf, ShortageError } from '../../../src/otlp/refusal.js';
import { ConsumeError } from '../../../src/record/record-batch.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

function bench() {
  const clock = new FakeClock();
  const logger = new RecordingLogger();
  const log = new RefusalLog(clock, logger);
  return { clock, logger, log, add: (error: unknown) => log.add(refusalOf(error), error) };
}

test('a reason is logged at once, then not for a minute, then with the number in between', () => {
  const { clock, logger, add } = bench();
  for (let i = 0; i < 5; i++) add(new RequestError('unknown_path', 'no'));
  clock.advance(59_999);
  add(new RequestError('unknown_path', 'no'));
  expect(logger.lines).toHaveLength(1);
  clock.advance(1);
  add(new RequestError('unknown_path', 'no'));
  expect(logger.lines.map((line) => line.fields.unloggedCount)).toEqual([0, 5]);
});

test('reasons do not hide one another', () => {
  const { logger, add } = bench();
  add(new RequestError('unknown_path', 'no'));
  add(new RequestError('too_large', 'no'));
  expect(logger.lines.map((line) => line.fields.reason)).toEqual(['unknown_path', 'too_large']);
});

test('an error nobody expected is logged as one, with its stack', () => {
  const { logger, add } = bench();
  add(new Error('broken'));
  expect(logger.lines[0]).toMatchObject({ level: 'error', message: 'request failed' });
  expect(logger.lines[0]?.fields.stack).toContain('broken');
});

test('what the guards and the record log say themselves is not said for each sender', () => {
  const { logger, add } = bench();
  add(new ShortageError({ message: 'no memory', retryAfterMs: 1_000 }));
  add(new ConsumeError('unavailable', 'no disk', 1_000));
  expect(logger.lines.map((line) => line.level)).toEqual(['debug', 'debug']);
});

test('a sender that went away is no warning', () => {
  const { logger, add } = bench();
  add(new RequestError('aborted', 'gone'));
  expect(logger.lines[0]?.level).toBe('debug');
});

test('records that are left out of a request are reported the same way', () => {
  const { clock, logger, log } = bench();
  for (let i = 0; i < 3; i++) log.addPartial(7, 'without a valid id');
  clock.advance(60_000);
  log.addPartial(7, 'without a valid id');
  expect(logger.lines.map((line) => line.fields)).toEqual([
    { rejectedCount: 7, detail: 'without a valid id', unloggedCount: 0 },
    { rejectedCount: 7, detail: 'without a valid id', unloggedCount: 2 },
  ]);
});
