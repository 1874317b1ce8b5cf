import { describe, expect, it } from 'vitest';
import { parseRetryAfterMs } from '../../../src/core/retry-policy.js';

const NOW = Date.UTC(2026, 0, 1);

describe('Retry-After', () => {
  it('is read as seconds', () => {
    expect(parseRetryAfterMs('120', NOW)).toBe(120_000);
    expect(parseRetryAfterMs('0', NOW)).toBe(0);
  });

  it('is read as a date, and one that has passed as now', () => {
    expect(parseRetryAfterMs(new Date(NOW + 5_000).toUTCString(), NOW)).toBe(5_000);
    expect(parseRetryAfterMs(new Date(NOW - 5_000).toUTCString(), NOW)).toBe(0);
  });

  it.each([undefined, '', 'soon', '-5', '1.5', '99999999999999999999'])('is none when it is %o', (header) => {
    expect(parseRetryAfterMs(header, NOW)).toBeNull();
  });
});
