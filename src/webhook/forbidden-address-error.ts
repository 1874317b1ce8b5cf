/** An endpoint's address is one that nothing is sent to. The message says which, by which rule, and what allows it. */
export class ForbiddenAddressError extends Error {
  override readonly name = 'ForbiddenAddressError';
  /** @param rule such as `127.0.0.1 is loopback` */
  constructor(host: string, rule: string) {
    super(`${host} is refused: ${rule}; add it to webhook-allow if deliveries may go there`);
  }
}
