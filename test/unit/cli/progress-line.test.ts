import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { ProgressLine } from '../../../src/cli/progress-line.js';
import { bufferedText } from '../../fake/buffered-text.js';

const MIB = 1024 * 1024;

/** What a long import writes; a terminal's stream says that it is one. */
function written(isTerminal: boolean, totalBytes: number): string {
  const stderr = Object.assign(new PassThrough(), { isTTY: isTerminal, columns: 80 });
  const progress = new ProgressLine({ stderr, isStderrTerminal: isTerminal });
  for (const part of [0.25, 0.5, 1]) progress.show({ bytesRead: totalBytes * part, totalBytes, recordCount: 7 });
  progress.end();
  return bufferedText(stderr);
}

describe('progress', () => {
  test('is a bar on a terminal', () => {
    expect(written(true, 100 * MIB)).toContain('%');
  });

  test('is nothing in a pipe', () => {
    expect(written(false, 100 * MIB)).toBe('');
  });

  test('is nothing for small files, and where nobody knows the size', () => {
    expect(written(true, MIB)).toBe('');
    expect(written(true, 0)).toBe('');
  });
});
