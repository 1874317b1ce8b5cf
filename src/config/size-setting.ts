import { formatByteSize, parseByteSize } from './byte-size.js';
import type { Setting } from './setting.js';

/** A setting that is a number of bytes. @param minBytes the least that makes sense. */
export function sizeSetting(defaultText: string | null, summary: string, minBytes = 1): Setting<number> {
  return {
    placeholder: 'SIZE',
    summary,
    expected: minBytes === 1 ? EXAMPLES : `a size of at least ${formatByteSize(minBytes)}, such as 1GiB`,
    defaultText,
    parse: (text) => atLeast(minBytes, parseByteSize(text)),
    format: formatByteSize,
  };
}

/** A setting that is a number of bytes or one of a few words. */
export function sizeOrWordSetting<const W extends string>(
  words: readonly W[],
  defaultText: W,
  summary: string,
): Setting<number | W> {
  return {
    placeholder: ['SIZE', ...words].join('|'),
    summary,
    expected: `${words.join(', ')} or ${EXAMPLES}`,
    defaultText,
    parse: (text) => words.find((word) => word === text.trim().toLowerCase()) ?? parseByteSize(text),
    format: (value) => (typeof value === 'number' ? formatByteSize(value) : value),
  };
}

const EXAMPLES = 'a size such as 64MiB or 500000';

function atLeast(minBytes: number, bytes: number | undefined): number | undefined {
  return bytes === undefined || bytes < minBytes ? undefined : bytes;
}
