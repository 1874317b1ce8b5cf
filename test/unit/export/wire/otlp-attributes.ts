import { ProtobufCodec } from '../../../../src/otlp/protobuf-codec.js';
import { buffer } from '../../../../src/record/arena.js';

const codec = new ProtobufCodec();

/** Attributes of a span that stand in the arena, as protobufjs reads them. */
export function attributesAt(start: number, end: number): Readonly<Record<string, unknown>> {
  // A request's spans of a scope of a resource.
  let message = buffer.subarray(start, end);
  for (const tag of [0x12, 0x12, 0x0a])
    message = Buffer.concat([Buffer.from([tag, ...varint(message.length)]), message]);
  const request = codec.decode('traces', message);
  const spans = request.signal === 'traces' ? request.resources[0]?.scopes[0]?.records : undefined;
  const attributes = spans?.[0]?.attributes;
  return Object.fromEntries((attributes ?? []).map(({ key, value }) => [key, value]));
}

function varint(length: number): readonly number[] {
  return length < 0x80 ? [length] : [(length & 0x7f) | 0x80, ...varint(length >>> 7)];
}
