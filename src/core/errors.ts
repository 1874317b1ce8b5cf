/** The message of an error; anything else as text. */
export function reasonOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  try {
    return String(thrown);
  } catch {
    return 'something that cannot be shown as text';
  }
}

/** The code of a system's error (`ENOENT`) or of a library's; `undefined` for an error without one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/**
 * Does something with a file that was just opened, and closes it where that fails. From Node 25 on, one that is left open
 * ends the process once its memory is collected.
 * @throws what the work throws
 */
export async function closeOnFailure<Result>(
  file: { close(): Promise<unknown> },
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    await file.close().catch(() => undefined);
    throw error;
  }
}
