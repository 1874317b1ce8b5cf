/** NUL, which PostgreSQL keeps in no text, and halves of surrogate pairs, which are no Unicode. */
const UNSTORABLE = /[\0\ud800-\udfff]/;
/** Replaces NUL, as terminals and editors display it. */
const NUL_SYMBOL = '\u2400';

/**
 * A statement's parameters in a form that every database stores and compares: in texts, NUL becomes `␀` and half a surrogate pair
 * the replacement character. Telemetry and senders and receivers of webhooks may contain them, and they must not prevent a
 * run from being written.
 */
export function storableValues(parameters: readonly unknown[]): readonly unknown[] {
  return parameters.some(isUnstorable) ? parameters.map(storable) : parameters;
}

function isUnstorable(value: unknown): value is string {
  return typeof value === 'string' && UNSTORABLE.test(value);
}

function storable(value: unknown): unknown {
  // Encoding replaces invalid Unicode, and keeps complete pairs.
  return isUnstorable(value) ? Buffer.from(value).toString().replaceAll('\0', NUL_SYMBOL) : value;
}
