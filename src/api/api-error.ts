/** A request that is not answered with what it asks for. The message is for whoever sent it: what happened and what to do. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  /**
   * @param status HTTP's, 400 to 599
   * @param userMessage ends up as `status.user_message`
   */
  constructor(
    readonly status: number,
    readonly userMessage: string,
    readonly headers: Readonly<Record<string, string>> = {},
    options?: ErrorOptions,
  ) {
    super(userMessage, options);
  }

  /** What is not there, and what is another account's: nobody can tell these apart. */
  static notFound(): ApiError {
    return new ApiError(404, 'The requested resource was not found.');
  }
}
