import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { int64Value, isInt64Field } from '../../../../src/export/mapping/exported-names.js';

interface Schema {
  readonly messages: Record<string, readonly { readonly name: string; readonly type: string }[]>;
}

const schema = JSON.parse(readFileSync('test/fixture/schema/telemetry-schema.json', 'utf8')) as Schema;
const fields = Object.values(schema.messages).flat();

describe('64-bit integers', () => {
  it('are those of the public schema', () => {
    for (const { name, type } of fields) {
      if (/^map<string,u?int64>$/.test(type)) expect(isInt64Field('any', name), name).toBe(true);
      else if (/^u?int64$/.test(type) && name !== 'parent_span_id') expect(isInt64Field(name, ''), name).toBe(true);
      else if (type === 'string' || type === 'bytes') expect(isInt64Field(name, ''), name).toBe(false);
    }
  });

  it('are numbers where a double holds them exactly', () => {
    expect(int64Value('366')).toBe(366);
    expect(int64Value('-5')).toBe(-5);
    expect(int64Value('9007199254740991')).toBe(9007199254740991);
    expect(int64Value('9007199254740993')).toBe('9007199254740993');
    expect(int64Value('')).toBe('');
  });
});
