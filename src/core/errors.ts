/** Returns the message of an error, or anything else that was thrown as text. */
export function reasonOf(thrown: unknown): string {
  if (thrown instanceof Error) return thrown.message;
  try {
    return String(thrown);
  } catch {
    return 'something that cannot be shown as text';
  }
}

/** Returns the code of a system error (`ENOENT`) or a library's error; `undefined` for an error without one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/**
 * Runs `work` on a file that was just opened, and closes the file if it fails. From Node 25 on, a file handle that is garbage-collected while open ends the process.
 * @throws what `work` throws
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
