import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { createLogger, type LoggerOptions } from '../../../src/cli/logger.js';
import { bufferedText } from '../../fake/buffered-text.js';

function written(options: Partial<LoggerOptions>, log: (logger: ReturnType<typeof createLogger>) => void): string {
  const stream = new PassThrough();
  log(createLogger({ level: 'info', format: 'auto', stream, isTerminal: false, ...options }));
  return bufferedText(stream);
}

describe("the program's log", () => {
  test('is JSON for machines, with the level by name', () => {
    const line = written({}, (logger) => logger.warn({ destination: 'a' }, 'something happened'));
    expect(JSON.parse(line)).toEqual({
      level: 'warn',
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
      destination: 'a',
      msg: 'something happened',
    });
  });

  test('is a readable line on a terminal', () => {
    const line = written({ isTerminal: true }, (logger) => logger.info({ a: 1, b: 'two words', c: null }, 'done'));
    expect(line).toMatch(/^\d\d:\d\d:\d\d info {2}done {2}a=1 {2}b="two words" {2}c=null\n$/);
  });

  test('is what format says, terminal or not', () => {
    expect(written({ format: 'text' }, (logger) => logger.error({}, 'x'))).toMatch(/ error x\n$/);
    expect(written({ format: 'json', isTerminal: true }, (logger) => logger.error({}, 'x'))).toMatch(/^\{/);
  });

  test('leaves out what is below its level', () => {
    expect(written({ level: 'warn' }, (logger) => logger.info({}, 'x'))).toBe('');
    expect(written({ level: 'silent' }, (logger) => logger.error({}, 'x'))).toBe('');
    expect(written({ level: 'debug' }, (logger) => logger.debug({}, 'x'))).not.toBe('');
  });
});
