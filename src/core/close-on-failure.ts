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
