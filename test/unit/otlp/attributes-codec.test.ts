import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { AttributesCodec, SchemaError } from '../../../src/otlp/attributes-codec.js';
import { PublicSchema } from '../../../src/otlp/public-schema.js';
import type { JsonObject } from '../../../src/record/attributes.js';
import { EVENT_TYPE_PREFIX } from '../../../src/record/event-table.js';
import { SMALL_SAMPLES, sampleLines } from '../../fake/sample-run.js';
import { LARGE_SAMPLES } from '../../tool/large-samples.js';

const codec = new AttributesCodec(PublicSchema.load());
const LOG_MESSAGE = `${EVENT_TYPE_PREFIX}log.LogMessage`;
const NODE = `${EVENT_TYPE_PREFIX}node.NodeProcessed`;
const CALL = `${EVENT_TYPE_PREFIX}dev.CallTrace`;
const SOURCE_DETAIL = `${EVENT_TYPE_PREFIX}node.SourceFreshnessDetail`;

describe('AttributesCodec', () => {
  it.each([...SMALL_SAMPLES, ...LARGE_SAMPLES])(
    'carries the attributes of every record of %s through protobuf, to the letter',
    (name) => {
      let count = 0;
      for (const line of sampleLines(name)) {
        const { event_type: eventType, attributes } = JSON.parse(line);
        if (!eventType.startsWith(EVENT_TYPE_PREFIX)) continue;
        const back = codec.decode(eventType, codec.encode(eventType, attributes));
        expect(JSON.stringify(back)).toBe(JSON.stringify(attributes));
        count++;
      }
      expect(count).toBeGreaterThan(20);
    },
  );

  it('keeps 64-bit integers to the last digit', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), (age) => {
        const detail = { age_seconds: age.toString() };
        expect(codec.decode(SOURCE_DETAIL, codec.encode(SOURCE_DETAIL, detail))).toEqual(detail);
      }),
    );
  });

  it('keeps the number of an enum value that the schema does not name', () => {
    expect(codec.decode(NODE, codec.encode(NODE, { node_type: 4711 }))).toEqual({ node_type: 4711 });
  });

  it('keeps bytes, doubles, maps and whichever member of a oneof is set, zeros too', () => {
    const attributes = {
      extra: {
        a: { bytes: 'AAE=' },
        b: { float64: 1.5 },
        c: { bool: false },
        d: { float64: 'NaN' },
        e: { string: '' },
      },
    };
    expect(codec.decode(CALL, codec.encode(CALL, attributes))).toEqual(attributes);
  });

  it('reads the other spellings of numbers and enums', () => {
    const attributes = { duration_ms: 366, node_index: '7', node_outcome: 1, group: null };
    expect(codec.decode(NODE, codec.encode(NODE, attributes))).toEqual({
      duration_ms: '366',
      node_index: 7,
      node_outcome: 'NODE_OUTCOME_SUCCESS',
    });
  });

  it('spells the severity of a message as a number, as the engine does', () => {
    const attributes = { original_severity_number: 13, original_severity_text: 'WARN' };
    expect(codec.decode(LOG_MESSAGE, codec.encode(LOG_MESSAGE, attributes))).toEqual(attributes);
  });

  it.each<[string, JsonObject, string]>([
    [
      'v1.public.events.fusion.node.NodeDreamt',
      {},
      'does not know the message v1.public.events.fusion.node.NodeDreamt',
    ],
    [NODE, { dreams: 1 }, 'has no field "dreams"'],
    [NODE, { name: 1 }, 'NodeProcessed.name must be a string.'],
    [NODE, { node_type: 'NODE_TYPE_DREAM' }, 'NodeProcessed.node_type must be a name or number of '],
    [NODE, { duration_ms: '-1' }, 'NodeProcessed.duration_ms must be a whole number of type uint64.'],
    [NODE, { duration_ms: 1.5 }, 'NodeProcessed.duration_ms must be a whole number of type uint64.'],
    [NODE, { node_index: 4294967296 }, 'NodeProcessed.node_index must be a whole number of type uint32.'],
    [NODE, { in_selection: 'yes' }, 'NodeProcessed.in_selection must be true or false.'],
    [NODE, { node_test_detail: [] }, 'NodeProcessed.node_test_detail must be an object.'],
    [NODE, { node_test_detail: {}, node_cache_detail: {} }, 'has several members of node_outcome_detail'],
    [CALL, { extra: { a: { bytes: '*' } } }, 'DebugValue.bytes must be bytes in base64.'],
    [CALL, { extra: [] }, 'CallTrace.extra must be an object.'],
  ])('refuses for %s the attributes %j', (eventType, attributes, message) => {
    expect(() => codec.encode(eventType, attributes)).toThrow(SchemaError);
    expect(() => codec.encode(eventType, attributes)).toThrow(message);
  });

  it('refuses bytes that are no message', () => {
    expect(() => codec.decode(NODE, Buffer.of(0x0a, 0x05, 0x41))).toThrow(SchemaError);
  });
});
