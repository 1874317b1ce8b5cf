import { LENGTH } from '../../otlp/wire-type.js';

/** A protobuf field of wire type 2: tag, length, content. */
export function lengthDelimited(number: number, content: Uint8Array): Buffer {
  const head = [(number << 3) | LENGTH];
  let length = content.length;
  for (; length >= 0x80; length >>>= 7) head.push((length & 0x7f) | 0x80);
  head.push(length);
  return Buffer.concat([Buffer.from(head), content]);
}
