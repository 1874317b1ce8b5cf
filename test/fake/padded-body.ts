/**
 * A valid, empty protobuf request of exactly this many bytes: one unknown field (15, length-delimited) of zeros.
 * @param byteCount at least 2; those around the sizes where the length's varint grows cannot be had.
 */
export function paddedBody(byteCount: number): Uint8Array {
  for (let lengthBytes = 1; lengthBytes <= 5; lengthBytes++) {
    const length = varint(byteCount - 1 - lengthBytes);
    if (length.length !== lengthBytes) continue;
    const body = Buffer.alloc(byteCount);
    body.set([0x7a, ...length]);
    return body;
  }
  throw new Error(`no padded body of ${byteCount} bytes`);
}

function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  for (; rest > 0x7f; rest = Math.floor(rest / 128)) bytes.push((rest % 128) | 0x80);
  return [...bytes, rest];
}
