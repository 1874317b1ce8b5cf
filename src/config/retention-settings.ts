import { formatDuration, parseDurationMs } from './duration.js';
import { isOff, type Setting } from './setting.js';

/** Ages are compared, not waited for: they may exceed the maximum of a timer. In milliseconds, ten years. */
const MAX_AGE_MS = 3_650 * 86_400_000;

/** A setting that is an age, or `off`. @param defaultText `off` where left out */
export function ageSetting(summary: string, defaultText = 'off'): Setting<number | 'off'> {
  return {
    placeholder: 'TIME|off',
    summary,
    expected: 'off or a time such as 12h or 90d, ten years at the most',
    defaultText,
    parse: (text) => (isOff(text) ? 'off' : parseDurationMs(text, MAX_AGE_MS) || undefined),
    format: (value) => (value === 'off' ? 'off' : formatDuration(value)),
  };
}
