import { isDeepStrictEqual } from 'node:util';
import { describe, expect, it } from 'vitest';
import { PublicSchema } from '../../../src/otlp/public-schema.js';
import { EVENT_TYPE_PREFIX } from '../../../src/record/event-table.js';
import { SMALL_SAMPLES, sampleLines } from '../../fake/sample-run.js';
import { messageBytes, messageJson } from '../../tool/message-json.js';

const schema = PublicSchema.load();
const NODE = `${EVENT_TYPE_PREFIX}node.NodeProcessed`;

describe('PublicSchema', () => {
  it('knows 41 messages and 22 enums, all of the public package', () => {
    expect(schema.messageNames).toHaveLength(41);
    expect(schema.enumNames).toHaveLength(22);
    expect(schema.messageNames.every((name) => name.startsWith(EVENT_TYPE_PREFIX))).toBe(true);
  });

  it('tells a field with all that is declared of it', () => {
    const message = schema.message(NODE);
    expect(message?.field('duration_ms')).toEqual({
      name: 'duration_ms',
      number: 41,
      type: { kind: 'uint64' },
      isRepeated: false,
      isOptional: true,
      oneof: undefined,
    });
    expect(message?.field('node_test_detail')).toMatchObject({ isOptional: false, oneof: 'node_outcome_detail' });
    expect(message?.field('nodeTestDetail')).toBeUndefined();
  });

  it('leads from a field to its enum and its message', () => {
    const outcome = schema.message(NODE)?.field('node_outcome')?.type;
    expect(outcome?.kind === 'enum' && outcome.enum.nameByNumber.get(4)).toBe('NODE_OUTCOME_SKIPPED');
    const detail = schema.message(NODE)?.field('node_test_detail')?.type;
    expect(detail?.kind === 'message' && detail.message.field('failing_rows')?.type.kind).toBe('int32');
  });

  it('says nothing of what it does not know', () => {
    expect(schema.message('v1.events.fusion.group.Groups')).toBeUndefined();
    expect(schema.enum(NODE)).toBeUndefined();
    expect(schema.message('constructor')).toBeUndefined();
  });
});

describe('the .proto files', () => {
  it.each([...SMALL_SAMPLES, 'big-build'])('carry the attributes of every record of %s', (name) => {
    let count = 0;
    for (const line of sampleLines(name)) {
      const { event_type: eventType, attributes } = JSON.parse(line);
      if (!eventType.startsWith(EVENT_TYPE_PREFIX)) continue;
      const back = messageJson(eventType, messageBytes(eventType, attributes));
      if (!isDeepStrictEqual(back, attributes)) expect(back).toEqual(attributes);
      count++;
    }
    expect(count).toBeGreaterThan(20);
  });
});
