/** The code of a system's error (`ENOENT`) or of a library's; `undefined` for an error without one. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}
