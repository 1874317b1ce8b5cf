import { describe, expect, it } from 'vitest';
import { AttributeTag, keyOf, putNumberAttribute, putTextAttribute } from '../../../../src/export/wire/wire-writer.js';
import { putText, REGION } from '../../../../src/record/arena.js';
import { attributesAt } from './otlp-attributes.js';

const TO = REGION.scratch;
const key = keyOf('db.query.text');

describe('attributes written into the arena', () => {
  it.each([0, 1, 113, 127, 128, 16_383, 16_384, 70_000])('are texts of any length: %d', (length) => {
    const text = 'é'.repeat(length / 2).padEnd(length / 2 + (length % 2), 'x');
    const end = putText(REGION.bodies, text);
    const behind = putTextAttribute(TO, AttributeTag.span, key, REGION.bodies, end - REGION.bodies);
    expect(attributesAt(TO, behind)).toEqual({ 'db.query.text': text });
  });

  it.each([0, 1, 127, 128, 2 ** 31 - 1, 2 ** 31, 2 ** 53 - 1, 2 ** 60, -1, -(2 ** 40), -(2 ** 53)])(
    'are whole numbers as integers: %d',
    (value) => {
      const behind = putNumberAttribute(TO, AttributeTag.span, key, value);
      expect(attributesAt(TO, behind)).toEqual({ 'db.query.text': BigInt(value) });
    },
  );

  it.each([0.5, -1e300, 2 ** 70, Number.POSITIVE_INFINITY])('are other numbers as doubles: %d', (value) => {
    const behind = putNumberAttribute(TO, AttributeTag.span, key, value);
    expect(attributesAt(TO, behind)).toEqual({ 'db.query.text': value });
  });
});
