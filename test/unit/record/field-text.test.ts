import fc from 'fast-check';
import { expect, it } from 'vitest';
import { fieldText } from '../../../src/record/record-line.js';

it('the text of a field is what the whole says of it', () => {
  const object = fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 3 }));
  fc.assert(
    fc.property(object, fc.constantFrom(undefined, 1, '\t'), (value, indent) => {
      const json = JSON.stringify(value, null, indent);
      // A key that JSON.parse gives its object as a prototype is no key of it.
      for (const [name, part] of Object.entries(JSON.parse(json) as Record<string, unknown>)) {
        expect(JSON.parse(fieldText(json, name) ?? 'undefined')).toEqual(part);
      }
      expect(fieldText(json, 'none of these')).toBeUndefined();
    }),
  );
});

it('of a field that comes twice the last text counts, as for JSON.parse', () => {
  expect(fieldText('{"a":1,"b":{"a":2},"a":[3]}', 'a')).toBe('[3]');
});
