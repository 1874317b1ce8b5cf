import { expect, test } from 'vitest';
import { OtlpDecodeError } from '../../../src/otlp/otlp-codec.js';
import { RequestError, type RequestErrorCode, refusalOf } from '../../../src/otlp/refusal.js';
import { ConsumeError, type ConsumeErrorCode } from '../../../src/record/record-batch.js';

test.each<[RequestErrorCode, number, number]>([
  ['malformed', 400, 3],
  ['unauthenticated', 401, 16],
  ['forbidden', 403, 7],
  ['too_many_tries', 429, 14],
  ['unknown_path', 404, 5],
  ['method', 405, 12],
  ['too_large', 413, 8],
  ['unsupported_type', 415, 12],
  ['unsupported_encoding', 415, 12],
  ['busy', 503, 14],
  ['slow', 408, 4],
  ['unknown_method', 404, 12],
  ['protocol', 400, 3],
])('a request error %s is HTTP %i and gRPC %i', (code, status, grpcCode) => {
  expect(refusalOf(new RequestError(code, 'why'))).toMatchObject({ status, grpcCode, reason: code, message: 'why' });
});

test.each<[ConsumeErrorCode, number, number]>([
  ['overloaded', 429, 14],
  ['unavailable', 503, 14],
  ['refused', 400, 3],
])('a consumer that says %s is HTTP %i and gRPC %i', (code, status, grpcCode) => {
  expect(refusalOf(new ConsumeError(code, 'why', 0))).toMatchObject({ status, grpcCode, message: 'why' });
});

test.each([
  [0, '1'],
  [1, '1'],
  [1_000, '1'],
  [1_001, '2'],
  [30_000, '30'],
])('%i ms are Retry-After: %s', (delayMs, seconds) => {
  expect(refusalOf(new ConsumeError('overloaded', 'why', delayMs)).headers).toEqual({ 'Retry-After': seconds });
});

test('only what passes by itself says when to come back', () => {
  expect(refusalOf(new ConsumeError('refused', 'why', 5_000)).headers).toEqual({});
  expect(refusalOf(new RequestError('too_large', 'why')).headers).toEqual({});
  expect(refusalOf(new RequestError('busy', 'why')).headers).toEqual({ 'Retry-After': '1' });
});

test('a body that cannot be decoded is 400, and an error nobody expected 500 without its message', () => {
  expect(refusalOf(new OtlpDecodeError('not protobuf'))).toMatchObject({ status: 400, message: 'not protobuf' });
  const refusal = refusalOf(new Error('secret path'));
  expect(refusal).toMatchObject({ status: 500, grpcCode: 13 });
  expect(refusal.message).not.toContain('secret');
});
