/** What backends group a failed node by, of the engine's type of error: `node_error_user` for `NODE_ERROR_TYPE_USER`. */
export function nodeErrorTypeOf(errorType: string | undefined): string {
  return errorType === undefined
    ? 'node_error'
    : `node_error_${errorType.replace(/^NODE_ERROR_TYPE_/, '').toLowerCase()}`;
}
