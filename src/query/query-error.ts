/** Why a query gave no answer. */
export type QueryErrorCode =
  /** The SQL is wrong, or is not one SELECT. */
  | 'invalid'
  /** The SQL asks for what no query may touch: files, settings, extensions. */
  | 'refused'
  /** It took longer than its limit. */
  | 'timeout'
  /** It needed more memory than its limit. */
  | 'memory'
  /** A row of the answer is larger than the whole answer may be. */
  | 'tooLarge'
  /** As many queries as may run are running, and as many as may wait are waiting. */
  | 'busy'
  /** The database engine is not part of this installation. */
  | 'notInstalled'
  /** Whoever asked has gone, or the program is stopping. */
  | 'stopped'
  /** A fault of the engine, or of a file. */
  | 'failed';

/** A query gave no answer; the message is for whoever asked. */
export class QueryError extends Error {
  override readonly name = 'QueryError';
  constructor(
    readonly code: QueryErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}
