/** A request that fails. The message is for the client: what happened and how to fix it. */
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

  /** Makes the error of a missing object, and of one of another account: clients cannot distinguish them. */
  static notFound(): ApiError {
    return new ApiError(404, 'The requested resource was not found.');
  }
}
