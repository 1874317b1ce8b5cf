/** NUL, which PostgreSQL keeps in no text, and halves of surrogate pairs, which are no Unicode. */
const UNSTORABLE = /[\0\ud800-\udfff]/;
/** Stands for NUL, as terminals and editors show it. */
const NUL_SYMBOL = '\u2400';

/**
 * A statement's parameters as every database keeps them and finds them again: in texts, NUL is `␀` and half a surrogate pair
 * is the replacement character. Telemetry, senders and receivers of webhooks say what they like, and none of it may keep a
 * run from being written.
 */
export function storableValues(parameters: readonly unknown[]): readonly unknown[] {
  return parameters.some(isUnstorable) ? parameters.map(storable) : parameters;
}

function isUnstorable(value: unknown): value is string {
  return typeof value === 'string' && UNSTORABLE.test(value);
}

function storable(value: unknown): unknown {
  // Encoding replaces what is no Unicode, and leaves whole pairs.
  return isUnstorable(value) ? Buffer.from(value).toString().replaceAll('\0', NUL_SYMBOL) : value;
}
