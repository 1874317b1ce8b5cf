import { describe, expect, it } from 'vitest';
import { readErrorResponse, readExportResponse } from '../../../src/export/otlp-destination.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';

const CODECS = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
const TYPES = { protobuf: 'application/x-protobuf', json: 'application/json; charset=utf-8' };

describe.each(['protobuf', 'json'] as const)('an answer in %s', (encoding) => {
  it.each(['traces', 'logs'] as const)('tells what was rejected of %s', (signal) => {
    const body = CODECS[encoding].encodeResponse(signal, 7, 'too old');
    expect(readExportResponse(signal, encoding, body)).toEqual({ rejectedCount: 7, message: 'too old' });
  });

  it.each(['traces', 'logs'] as const)('tells that nothing was rejected of %s', (signal) => {
    const body = CODECS[encoding].encodeResponse(signal, 0, '');
    expect(readExportResponse(signal, encoding, body)).toEqual({ rejectedCount: 0, message: '' });
    expect(readExportResponse(signal, encoding, new Uint8Array())).toEqual({ rejectedCount: 0, message: '' });
  });

  it('gives the message of its status', () => {
    const body = CODECS[encoding].encodeStatus(3, 'no such tenant');
    expect(readErrorResponse(body, TYPES[encoding])).toBe('no such tenant');
  });
});

describe('an answer in another form', () => {
  it('gives its text', () => {
    expect(readErrorResponse(Buffer.from(' not here\n'), 'text/plain')).toBe('not here');
    expect(readErrorResponse(Buffer.from('"?"'), 'application/json')).toBe('"?"');
  });
});
