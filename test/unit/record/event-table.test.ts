import { describe, expect, it } from 'vitest';
import { PublicAttributeSchema } from '../../../src/otlp/attribute-schema.js';
import { PublicSchema } from '../../../src/otlp/public-schema.js';
import { ALL_FIELDS, EVENT_TYPE_PREFIX, EVENTS, fieldsOfMessage } from '../../../src/record/event-table.js';
import { attributePolicyOf } from '../../../src/redaction/known-names.js';

const schema = PublicSchema.load();
const kinds = new PublicAttributeSchema(schema);
/** Messages that are part of others, and of no event alone. */
const parts = new Set(ALL_FIELDS.flatMap(([, { message }]) => (message === undefined ? [] : [message])));
const messages = schema.messageNames.map((name) => name.slice(EVENT_TYPE_PREFIX.length));

/** The fields of a message and what they are, as the schema says it. */
function declared(name: string): Record<string, unknown> {
  const { fields = [] } = schema.message(EVENT_TYPE_PREFIX + name) ?? {};
  return Object.fromEntries(
    fields.map((field) => {
      const { kind, message } = kinds.field(EVENT_TYPE_PREFIX + name, field.name) ?? {};
      return [field.name, { kind, message: message?.slice(EVENT_TYPE_PREFIX.length) }];
    }),
  );
}

describe('the table of event types', () => {
  it('has every event of the public schema, and no other', () => {
    const known = [...EVENTS.keys()].map((name) => name.slice(EVENT_TYPE_PREFIX.length));
    expect(messages).toEqual(expect.arrayContaining(known));
    expect(messages.filter((name) => !known.includes(name) && !parts.has(name))).toEqual([]);
  });

  it.each(messages)('has the fields of %s as the schema has them', (name) => {
    const inTable = Object.entries(fieldsOfMessage(name)).map(([field, { kind, message }]) => [
      field,
      { kind, message },
    ]);
    expect(Object.fromEntries(inTable)).toEqual(declared(name));
  });

  it('gives an attribute one policy, whatever the event', () => {
    for (const [eventType, { fields }] of EVENTS) {
      for (const [name, { kind, policy }] of Object.entries(fields)) {
        const expected = policy ?? (kind === 'enum' ? 'keep' : 'text');
        expect([eventType, name, attributePolicyOf(name, eventType)]).toEqual([eventType, name, expected]);
      }
    }
  });
});
