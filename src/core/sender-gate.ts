/** Decides who may send telemetry to an address, and for which account. */
export interface SenderGate {
  /**
   * @param authorization the header of that name
   * @param address the sender's IP address
   * @returns the account whose the sender's telemetry is; `null` for the first. At once where nothing has to be looked up
   * @throws RequestError `unauthenticated`, `forbidden`, `too_many_tries`; ConsumeError `unavailable`
   */
  admit(authorization: string | undefined, address: string): Promise<number | null> | null;
}
