/** Attributes do not fit the message that they claim to be. The message names the field, never its value. */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
}
