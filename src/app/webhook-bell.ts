/** Rings when events for webhooks come to be: what writes them is there before what delivers them. */
export class WebhookBell {
  private listener: () => void = () => {};

  readonly ring = (): void => this.listener();

  /** One listener at a time. */
  listen(listener: () => void): void {
    this.listener = listener;
  }
}
