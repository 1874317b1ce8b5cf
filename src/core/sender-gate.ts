/** Decides who may send telemetry, and for which account. */
export interface SenderGate {
  /**
   * @param authorization the `Authorization` header
   * @param address the sender's IP address
   * @returns the account that the telemetry belongs to; `null` for the first account. At once where nothing has to be looked up
   * @throws RequestError `unauthenticated`, `forbidden`, `too_many_tries`; ConsumeError `unavailable`
   */
  admit(authorization: string | undefined, address: string): Promise<number | null> | null;
}
