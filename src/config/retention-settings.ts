import { formatByteSize, parseByteSize } from './byte-size.js';
import { formatDuration, parseDurationMs } from './duration.js';
import { isOff, type Setting } from './setting.js';

/** How much of a kind of data is kept. */
export interface RetentionLimits {
  /** What ended longer ago goes; `null` for no such limit. In milliseconds. */
  readonly maxAgeMs: number | null;
  /** While there is more, the oldest goes; `null` for no such limit. */
  readonly maxBytes: number | null;
}

/** Ages are compared, not waited for: they may exceed the maximum of a timer. In milliseconds, ten years. */
const MAX_AGE_MS = 3_650 * 86_400_000;

/** A setting that is an age, a size, both, or `off`. @param defaultText `off` where left out */
export function retentionSetting(summary: string, defaultText = 'off'): Setting<RetentionLimits> {
  return {
    placeholder: 'TIME,SIZE|off',
    summary,
    expected: 'off, a time such as 12h or 90d, ten years at the most, a size such as 50GiB, or both: 90d,50GiB',
    defaultText,
    parse(text) {
      if (isOff(text)) return { maxAgeMs: null, maxBytes: null };
      const parts = text.split(',').map((part) => part.trim());
      const ages = parts.flatMap((part) => parseDurationMs(part, MAX_AGE_MS) || []);
      const sizes = parts.flatMap((part) => parseByteSize(part) ?? []);
      const isWhole = ages.length < 2 && sizes.length < 2 && ages.length + sizes.length === parts.length;
      return isWhole ? { maxAgeMs: ages[0] ?? null, maxBytes: sizes[0] ?? null } : undefined;
    },
    format({ maxAgeMs, maxBytes }) {
      const age = maxAgeMs === null ? [] : [formatDuration(maxAgeMs)];
      return [...age, ...(maxBytes === null ? [] : [formatByteSize(maxBytes)])].join(',') || 'off';
    },
  };
}
