import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type Field, PublicSchema } from '../../../src/otlp/public-schema.js';
import {
  MESSAGE_KEY_ORDERS,
  MESSAGE_LAYOUTS,
  ONEOF_FIELD,
  ONEOF_MEMBERS,
} from '../../../src/parquet/message-layout.js';
import type { JsonValue } from '../../../src/record/attributes.js';
import { EVENT_TYPE_PREFIX } from '../../../src/record/event-table.js';

const { about: _about, ...published }: Record<string, string | string[]> = JSON.parse(
  readFileSync(new URL('../../fixture/schema/parquet-layout.json', import.meta.url), 'utf8'),
).columnsByMessage;
const schema = PublicSchema.load();
const layouts = [...MESSAGE_LAYOUTS].map(([name, layout]) => ({ name, layout, message: schema.message(name) }));

describe('MESSAGE_LAYOUTS', () => {
  it('has the messages of the published layout, and no other', () => {
    const names = Object.keys(published).map((name) => EVENT_TYPE_PREFIX + name);
    expect([...MESSAGE_LAYOUTS.keys()].sort()).toEqual(names.sort());
  });

  it.each(Object.entries(published))('spreads %s as published', (name, entries) => {
    const layout = MESSAGE_LAYOUTS.get(EVENT_TYPE_PREFIX + name);
    const columns = layout?.columns.map(({ field, column }) => (field === column ? field : `${field}>${column}`));
    if (typeof entries === 'string') {
      expect([entries, columns, layout?.payload, layout?.payloadIs]).toEqual(['whole', [], [], 'always']);
      return;
    }
    expect(columns?.sort()).toEqual(entries.filter((entry) => !entry.includes(' ')).sort());
    for (const remark of entries.filter((entry) => entry.includes(' '))) {
      if (remark === 'extra is json_payload itself') expect(layout?.payloadMap).toBe('extra');
      else if (remark === 'dbt_core_event_code is always Z052') {
        expect(layout?.constant).toEqual({ column: 'dbt_core_event_code', text: 'Z052' });
      } else {
        const fields = /^json_payload \{(.*)\}/.exec(remark)?.[1]?.split(', ');
        if (fields !== undefined) expect(layout?.payload.map(({ field }) => field).sort()).toEqual(fields.sort());
        expect(layout?.payloadIs).toBe(remark.includes('null when') ? 'any' : 'always');
      }
    }
  });

  it.each(layouts)('puts a zero for each plain field of $name that JSON leaves out, and for no other', (entry) => {
    for (const { field, zero } of [...entry.layout.columns, ...entry.layout.payload]) {
      if (field === ONEOF_FIELD) continue;
      const declared = entry.message?.field(field);
      expect([field, zero]).toEqual([field, declared && zeroOf(declared)]);
    }
  });

  it.each(layouts)('knows which fields of $name are 64-bit numbers in the payload', ({ layout, message }) => {
    for (const { field, isUint64 } of layout.payload) {
      expect([field, isUint64 === true]).toEqual([field, message?.field(field)?.type.kind === 'uint64']);
    }
  });

  it('knows the members of the oneof', () => {
    const members = schema
      .message(`${EVENT_TYPE_PREFIX}node.NodeProcessed`)
      ?.fields.filter(({ oneof }) => oneof === ONEOF_FIELD)
      .map(({ name }) => name);
    expect([...ONEOF_MEMBERS.keys()]).toEqual(members);
  });
});

describe('MESSAGE_KEY_ORDERS', () => {
  it('has the fields of each public message in the order of its declaration', () => {
    for (const [name, order] of MESSAGE_KEY_ORDERS) {
      const message = schema.message(name);
      if (message === undefined) continue;
      expect([name, Object.keys(order)]).toEqual([name, message.fields.map((field) => field.name)]);
    }
  });
});

/** What a field without presence holds when it is left out; `undefined` for one that is unset then. */
function zeroOf(field: Field): JsonValue | undefined {
  if (field.isRepeated) return [];
  if (field.isOptional || field.oneof !== undefined) return undefined;
  switch (field.type.kind) {
    case 'string':
    case 'bytes':
      return '';
    case 'bool':
      return false;
    case 'enum':
      return field.name === 'original_severity_number' ? 0 : field.type.enum.nameByNumber.get(0);
    case 'message':
    case 'map':
      return undefined;
    default:
      return 0;
  }
}
