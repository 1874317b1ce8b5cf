import { expect, test } from 'vitest';
import { tellProtocol } from '../../../../src/receiver/grpc/otlp-grpc-receiver.js';

const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';

test.each([
  ['', undefined],
  ['P', undefined],
  [PREFACE.slice(0, 23), undefined],
  [PREFACE, 'http2'],
  [`${PREFACE}more`, 'http2'],
  ['POST /v1/traces HTTP/1.1', 'http1'],
  ['GET / HTTP/1.1', 'http1'],
  ['PRI * HTTP/1.1', 'http1'],
  ['\x16\x03\x01', 'tls'],
  ['\x00\x00', 'unknown'],
])('%j is %s', (head, protocol) => {
  expect(tellProtocol(Buffer.from(head, 'latin1'))).toBe(protocol);
});
