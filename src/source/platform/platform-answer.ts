/** An answer of the platform, its body not yet read. */
export interface PlatformAnswer {
  /** As asked for, without query and token; for messages. */
  readonly url: string;
  readonly contentType: string;
  /** As announced; `null` where it is not. */
  readonly lengthBytes: number | null;
  /** Throws when it is cut off; `PlatformHttp` then asks again. */
  readonly body: AsyncIterable<Uint8Array>;
}
