import { expect, test } from 'vitest';
import { encodeRetryInfo } from '../../../../src/receiver/grpc/grpc-services.js';

const TYPE_URL = Buffer.from('type.googleapis.com/google.rpc.RetryInfo').toString('hex');

test.each([
  [1_000, '08011000'],
  [300_000, '08ac021000'],
  [1_500, '08011080cab5ee01'],
])('%i ms are a RetryInfo in the details of a Status', (retryAfterMs, duration) => {
  const nested = (tag: string, hex: string) => tag + (hex.length / 2).toString(16).padStart(2, '0') + hex;
  const any = nested('0a', TYPE_URL) + nested('12', nested('0a', duration));
  expect(Buffer.from(encodeRetryInfo(retryAfterMs)).toString('hex')).toBe(nested('1a', any));
});
