/** Decides who may send telemetry to an address. */
export interface SenderGate {
  /**
   * @param authorization the header of that name
   * @param address the sender's IP address
   * @throws RequestError `unauthenticated`, `forbidden`, `too_many_tries`; ConsumeError `unavailable`
   */
  admit(authorization: string | undefined, address: string): Promise<void>;
}
