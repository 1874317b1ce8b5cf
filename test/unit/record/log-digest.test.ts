import { expect, it } from 'vitest';
import { Digester, eventDigest, logDigest } from '../../../src/record/log-digest.js';
import type { LogRecord, SpanId } from '../../../src/record/telemetry-record.js';

const spanId = '00f067aa0ba902b7' as SpanId;
const recordOf = (body: string) => ({ spanId, timeUnixNano: 7n, eventType: 'type', body }) as LogRecord;

it('is the same of a record as of its bytes, wherever these stand', () => {
  const digester = new Digester();
  for (let length = 0; length < 40; length++) {
    const body = 'é'.repeat(length) + 'x'.repeat(length % 8);
    const content = Buffer.from(`..${spanId}|7|type|${body}..`);
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    digester.read(view, 2, content.length - 2);
    expect([digester.high, digester.low]).toEqual(logDigest(recordOf(body)));
  }
});

it('is another one for each body of many that are alike, and for each event id', () => {
  const digests = new Set<string>();
  for (let number = 0; number < 50_000; number++) {
    digests.add(logDigest(recordOf(`model ${number} of 50000`)).join());
    digests.add(
      logDigest(recordOf('a'.repeat(number % 500) + String.fromCharCode(0x4e00 + Math.floor(number / 500)))).join(),
    );
    digests.add(eventDigest([1, 2], String(number)).join());
  }
  expect(digests.size).toBe(150_000);
});
