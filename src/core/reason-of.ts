/** The message of an error; anything else as text. */
export function reasonOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  try {
    return String(thrown);
  } catch {
    return 'something that cannot be shown as text';
  }
}
