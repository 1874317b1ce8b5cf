/** What became of one attempt to send. */
export type SendResult =
  /** 2xx. `rejectedCount` and `message` come from OTLP's partial success. */
  | { readonly kind: 'accepted'; readonly rejectedCount: number; readonly message: string }
  /** 408, 429, 5xx, a network or TLS error, no answer in time. `retryAfterMs` when the receiver sent it. */
  | {
      readonly kind: 'retryable';
      readonly status: number | null;
      readonly retryAfterMs: number | null;
      readonly message: string;
    }
  /** Any other answer: sending the same again would not help. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string };

/** Sends bodies to one receiver. One attempt, no retry; never throws for what the other side does. */
export interface Transport {
  /** @param signal aborts the attempt, which is then `retryable`. */
  send(body: Uint8Array, signal: AbortSignal): Promise<SendResult>;
}
