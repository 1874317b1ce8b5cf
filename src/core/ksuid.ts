/** 2014-05-13T16:53:20Z, from which KSUIDs count their seconds. */
const EPOCH_S = 1_400_000_000;
const PAYLOAD_BYTES = 16;
const LENGTH = 27;
const DIGITS = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';

/**
 * A K-sortable unique id (https://github.com/segmentio/ksuid): 27 letters and digits, made of a second and 128 random bits.
 * @param randomBytes gives so many random bytes
 */
export function ksuid(nowUnixMs: number, randomBytes: (count: number) => Uint8Array): string {
  const bytes = Buffer.alloc(4 + PAYLOAD_BYTES);
  bytes.writeUInt32BE((Math.floor(nowUnixMs / 1_000) - EPOCH_S) >>> 0, 0);
  bytes.set(randomBytes(PAYLOAD_BYTES), 4);
  let rest = BigInt(`0x${bytes.toString('hex')}`);
  let text = '';
  while (text.length < LENGTH) {
    text = `${DIGITS[Number(rest % 62n)]}${text}`;
    rest /= 62n;
  }
  return text;
}
