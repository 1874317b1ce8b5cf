/** A field of a protobuf message. */
export interface WireField {
  readonly number: number;
  /** Of a field with a length, or of a fixed one. */
  readonly bytes: Buffer;
}

/**
 * The fields of a protobuf message that have bytes; varints are passed over. For counting what comes in without a decoder
 * that would cost more than what is measured.
 * @throws Error when it is no message.
 */
export function* wireFields(message: Buffer): Iterable<WireField> {
  let at = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = message[at++];
      if (byte === undefined) throw new Error('a protobuf message ends within a number');
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = varint();
    const kind = tag & 7;
    if (kind === 0) varint();
    else {
      const length = kind === 2 ? varint() : kind === 1 ? 8 : 4;
      yield { number: Math.floor(tag / 8), bytes: message.subarray(at, at + length) };
      at += length;
    }
  }
}
