import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { latestTime, rebaseRequest } from '../../../src/commands/replay-demo.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { invocationIdOf, parseTraceId } from '../../../src/record/telemetry-record.js';

const folder = new URL('../../../demo/', import.meta.url);
const codec = new ProtobufCodec();
const requests = readdirSync(folder).map((name) =>
  codec.decode(name.includes('traces') ? 'traces' : 'logs', readFileSync(new URL(name, folder))),
);
const from = parseTraceId('01a1fb8ea78d7281ae8c1be536b674cd');
const to = parseTraceId('0123456789abcdef0123456789abcdef');
if (from === undefined || to === undefined) throw new Error('no trace ids');

describe('a recorded run that is sent again', () => {
  const shiftNano = 3_600_000_000_000n;
  const rebased = requests.map((request) => rebaseRequest(request, { from, to, shiftNano }));
  const text = rebased.map((request) => Buffer.from(codec.encode(request)).toString('latin1')).join('');

  test('is another run: its trace and invocation id are nowhere left', () => {
    for (const id of [from, invocationIdOf(from), Buffer.from(from, 'hex').toString('latin1')]) {
      expect(text).not.toContain(id);
    }
    expect(text).toContain(`dbt invocation (${invocationIdOf(to)})`);
  });

  test('happens at another time, all of it', () => {
    expect(latestTime(rebased)).toBe(latestTime(requests) + shiftNano);
  });

  test('is otherwise the same', () => {
    const back = rebased.map((request) => rebaseRequest(request, { from: to, to: from, shiftNano: -shiftNano }));
    expect(back).toEqual(requests);
  });
});
