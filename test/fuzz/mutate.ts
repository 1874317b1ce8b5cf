import type { Dice } from './dice.js';
import {
  allFields,
  FIXED32,
  FIXED64,
  LENGTH,
  type MessageName,
  readFields,
  VARINT,
  varint,
  type WireField,
  writeFields,
} from './wire-field.js';

/** A body with one to three things wrong with it. @param others to splice in */
export function mutateWire(body: Buffer, signal: MessageName, others: readonly Buffer[], dice: Dice): Buffer {
  let bytes = body;
  for (let changes = dice.oneIn(2) ? 1 : 2 + dice.below(2); changes > 0; changes--) {
    bytes = dice.oneIn(5) ? mutateBytes(bytes, others, dice) : mutateFields(bytes, signal, dice);
  }
  return bytes;
}

/** Changes that know nothing of what the bytes mean. */
export function mutateBytes(body: Buffer, others: readonly Buffer[], dice: Dice): Buffer {
  const at = dice.below(body.length);
  const to = Math.min(body.length, at + 1 + dice.below(dice.oneIn(4) ? 400 : 8));
  const around = (middle: Uint8Array) => Buffer.concat([body.subarray(0, at), middle, body.subarray(to)]);
  switch (dice.below(8)) {
    case 0:
      return around(Buffer.from([(body[at] ?? 0) ^ (1 << dice.below(8))]));
    case 1:
      return around(dice.bytes(1));
    case 2:
      return around(Buffer.alloc(0));
    case 3:
      return Buffer.concat([body.subarray(0, at), dice.bytes(1 + dice.below(12)), body.subarray(at)]);
    case 4:
      return body.subarray(0, at);
    case 5:
      return Buffer.concat([body.subarray(0, to), body.subarray(at)]);
    case 6: {
      const other = dice.pick(others);
      return Buffer.concat([body.subarray(0, at), other.subarray(dice.below(other.length))]);
    }
    default:
      return around(dice.pick(ODD_BYTES));
  }
}

function mutateFields(body: Buffer, signal: MessageName, dice: Dice): Buffer {
  const fields = readFields(body, signal);
  const everywhere = allFields(fields);
  if (everywhere.length === 0) return body;
  const field = dice.pick(everywhere);
  const siblings = everywhere.find((each) => each.fields?.includes(field))?.fields ?? fields;
  const at = siblings.indexOf(field);
  switch (dice.below(12)) {
    case 0: // left out
      siblings.splice(at, 1);
      break;
    case 1: // twice
      siblings.splice(dice.below(siblings.length + 1), 0, field);
      break;
    case 2: // elsewhere
      siblings.splice(at, 1);
      siblings.splice(dice.below(siblings.length + 1), 0, field);
      break;
    case 3: // beside one that nobody knows
      siblings.splice(dice.below(siblings.length + 1), 0, unknownField(dice));
      break;
    case 4: // of another type
      field.wire = dice.below(8);
      break;
    case 5: // with another number
      field.number = dice.oneIn(4) ? dice.below(2 ** 29) : dice.below(20);
      break;
    case 6: // with an odd length
      field.lengthBytes = oddLength(field.bytes.length, dice);
      break;
    case 7: // with an odd tag
      field.tagBytes = oddTag(field, dice);
      break;
    case 8: // merged with a second part, as protobuf has it for messages that come twice
      siblings.splice(at + 1, 0, { ...field, ...(field.fields && { fields: someOf(field.fields, dice) }) });
      break;
    default:
      changeContent(field, everywhere, dice);
  }
  return writeFields(fields);
}

function changeContent(field: WireField, everywhere: readonly WireField[], dice: Dice): void {
  if (field.wire === VARINT) field.bytes = oddVarint(dice);
  else if (field.wire === FIXED64) field.bytes = dice.pick(ODD_TIMES);
  else if (field.wire === FIXED32) field.bytes = dice.bytes(4);
  else if (field.message === 'anyValue') field.fields = [anyValue(dice, dice.oneIn(20) ? 40 : dice.below(5))];
  else if (field.fields !== undefined) field.fields = someOf(field.fields, dice);
  else if (field.bytes.length === 16 || field.bytes.length === 8) field.bytes = oddId(field.bytes, dice);
  else if (dice.oneIn(2)) field.bytes = dice.pick(ODD_TEXTS);
  else field.bytes = dice.pick(everywhere.filter(({ fields }) => fields === undefined)).bytes;
}

function someOf(fields: readonly WireField[], dice: Dice): WireField[] {
  return fields.filter(() => dice.oneIn(2));
}

/** A value with lists and maps in it. */
function anyValue(dice: Dice, depth: number): WireField {
  const kind = depth > 0 ? 5 + dice.below(2) : 1 + dice.below(8);
  const length = (number: number, bytes: Buffer): WireField => ({ number, wire: LENGTH, bytes });
  const message = (number: number, fields: WireField[]): WireField => ({
    number,
    wire: LENGTH,
    bytes: Buffer.alloc(0),
    fields,
  });
  switch (kind) {
    case 1:
      return length(1, dice.pick(ODD_TEXTS));
    case 2:
      return { number: 2, wire: VARINT, bytes: dice.pick([varint(0), varint(1), varint(2), oddVarint(dice)]) };
    case 3:
      return { number: 3, wire: VARINT, bytes: oddVarint(dice) };
    case 4:
      return { number: 4, wire: FIXED64, bytes: dice.oneIn(2) ? dice.pick(ODD_DOUBLES) : dice.bytes(8) };
    case 5:
      return message(
        5,
        list(dice, () => message(1, [anyValue(dice, depth - 1)])),
      );
    case 6:
      return message(
        6,
        list(dice, () => message(1, [length(1, dice.pick(ODD_TEXTS)), message(2, [anyValue(dice, depth - 1)])])),
      );
    case 7:
      return length(7, dice.bytes(dice.below(4)));
    default: // a value of no kind
      return length(9, Buffer.alloc(0));
  }
}

function list<T>(dice: Dice, make: () => T): T[] {
  return Array.from({ length: dice.oneIn(4) ? dice.below(4) : 1 }, make);
}

function unknownField(dice: Dice): WireField {
  const number = dice.pick([0, 10, 16, 17, 19, 100, 2047, 2048, 2 ** 21, 2 ** 29 - 1]);
  const wire = dice.below(8);
  const sizes: Readonly<Record<number, Buffer>> = { 0: oddVarint(dice), 1: dice.bytes(8), 5: dice.bytes(4) };
  if (wire === 3 && dice.oneIn(2)) {
    // A group with something in it and its end.
    return { number, wire, bytes: Buffer.concat([varint(8 + VARINT), varint(5), varint(number * 8 + 4)]) };
  }
  return { number, wire, bytes: sizes[wire] ?? dice.bytes(dice.below(5)) };
}

function oddVarint(dice: Dice): Buffer {
  const value = dice.pick([
    0n,
    1n,
    2n,
    3n,
    127n,
    128n,
    2n ** 31n,
    2n ** 32n,
    2n ** 53n + 1n,
    2n ** 63n,
    2n ** 64n - 1n,
  ]);
  if (dice.oneIn(6)) return Buffer.alloc(11, 0x81);
  return varint(value, dice.oneIn(3) ? dice.below(5) : 0);
}

function oddLength(length: number, dice: Dice): Buffer {
  const off = dice.pick([-2, -1, 1, 2, 7, 100, 100_000]);
  if (dice.oneIn(3)) return varint(length, 1 + dice.below(9));
  if (dice.oneIn(4)) return varint(dice.pick([2n ** 31n - 1n, 2n ** 31n, 2n ** 32n, 2n ** 32n + 1n, 2n ** 64n - 1n]));
  return varint(Math.max(0, length + off));
}

function oddTag({ number, wire }: WireField, dice: Dice): Buffer {
  const tag = BigInt(number * 8 + wire);
  return dice.pick([varint(tag, 1), varint(tag, 4), varint(tag, 9), varint(tag + 2n ** 32n), varint(tag + 2n ** 35n)]);
}

function oddId(id: Buffer, dice: Dice): Buffer {
  const changed = Buffer.from(id);
  changed[dice.below(id.length)] = dice.below(256);
  const ids = [Buffer.alloc(0), Buffer.alloc(id.length), id.subarray(1), Buffer.concat([id, dice.bytes(1)])];
  return dice.oneIn(3) ? changed : dice.pick([...ids, Buffer.alloc(id.length, 255), Buffer.from(id.toString('hex'))]);
}

const ODD_BYTES = ['00', 'ff', '80', '8000', 'ffffffffffffffffff01', 'ffffffff0f', '0b0c', '0a00'].map((hex) =>
  Buffer.from(hex, 'hex'),
);

const ODD_TIMES = [0n, 1n, 999n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n, 1795221792681366001n].map(
  (nanos) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64LE(nanos);
    return bytes;
  },
);

const ODD_DOUBLES = [0, -0, 1, 1.5, -1, 1e21, 1e-7, 5e-324, 2 ** 53, 1e308, Number.NaN, Infinity, -Infinity].map(
  (value) => {
    const bytes = Buffer.alloc(8);
    bytes.writeDoubleLE(value);
    return bytes;
  },
);

const ODD_TEXTS = [
  ...['', ' ', 'x', '"', '\\', '\n', '\u0000', '\u007f', '\u2028', 'ü 日本 😀', '__proto__', 'constructor', 'toString'],
  ...['{}', '[]', '{"a":1.0}', '{"a":[1,{"b":null}]}', ' {"a":1}', '{"a":1', '[1,2', '1.0', 'null', 'true', '-0'],
  ...['{"a":1}x', '{"a":1,"a":2}', '{"__proto__":1}', '{"a":1e999}', '{"a":"\\ud800"}', '{"a":12345678901234567890}'],
  ...['NODE_OUTCOME_SUCCESS', 'EXECUTION_PHASE_RUN', 'Success', 'Run', 'run', '12', '9223372036854775808', 'phase'],
  ...['unique_id', 'node_outcome', 'last_phase', 'dbt_core_event_code', '_event_type', 'service.name', 'dbt-fusion'],
  ...['v1.public.events.fusion.node.NodeEvaluated', 'v1.public.events.fusion.process.Process', 'Node processed (a.b)'],
  ...['Node evaluated (model.a.b)', 'dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', 'Phase: RUN (nodes: 3)'],
]
  .map((text) => Buffer.from(text))
  .concat(
    [
      'ff',
      'c3',
      'c328',
      'e28228',
      'eda080',
      'f0288cbc',
      'f4908080',
      'c080',
      'efbbbf',
      'efbfbd',
      '61ff62',
      'f09f98',
    ].map((hex) => Buffer.from(hex, 'hex')),
    [Buffer.alloc(300, 'long '), Buffer.from(`${'['.repeat(70)}${']'.repeat(70)}`)],
  );
