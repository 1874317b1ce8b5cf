import { expect, test } from 'vitest';
import { parseContentCoding, parseContentLength, parseEncoding } from '../../../src/otlp/read-body.js';

test.each([
  ['application/x-protobuf', 'protobuf'],
  ['application/json', 'json'],
  ['Application/JSON; charset=utf-8', 'json'],
  ['application/x-protobuf;charset=UTF-8', 'protobuf'],
])('Content-Type %s is %s', (contentType, encoding) => {
  expect(parseEncoding({ 'content-type': contentType })).toBe(encoding);
});

test.each([undefined, '', 'text/plain', 'application/jsonx', 'application/grpc'])(
  'Content-Type %s is not taken',
  (contentType) => {
    const headers = contentType === undefined ? {} : { 'content-type': contentType };
    expect(() => parseEncoding(headers)).toThrow(
      /is not supported; send application\/x-protobuf or application\/json\.$/,
    );
  },
);

test.each([
  [undefined, 'identity'],
  ['', 'identity'],
  ['identity', 'identity'],
  ['GZIP', 'gzip'],
  ['x-gzip', 'gzip'],
  [' deflate ', 'deflate'],
])('Content-Encoding %s is %s', (contentEncoding, coding) => {
  expect(parseContentCoding(contentEncoding)).toBe(coding);
});

test.each(['br', 'snappy', 'gzip, gzip', 'compress'])('Content-Encoding %s is not taken', (contentEncoding) => {
  expect(() => parseContentCoding(contentEncoding)).toThrow(/is not supported; send gzip, deflate/);
});

test('a very long header is quoted in part', () => {
  const contentType = 'x'.repeat(10_000);
  expect(() => parseEncoding({ 'content-type': contentType })).toThrow(/^.{0,300}$/);
});

test('a chunked body announces no length', () => {
  expect(parseContentLength({})).toBeUndefined();
  expect(parseContentLength({ 'content-length': '12' })).toBe(12);
});
