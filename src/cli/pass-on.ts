import type { Writable } from 'node:stream';

/** Passes bytes on to who reads a stream, and goes on in silence when that has gone: `… | head` is no failure. */
export class PassOn {
  private isGone = false;

  constructor(private readonly stream: Writable) {
    const gone = () => {
      this.isGone = true;
    };
    stream.once('error', gone);
    stream.once('close', gone);
  }

  /** Resolves when there is room for more, or nobody reads. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.isGone || bytes.length === 0 || this.stream.write(bytes)) return;
    await new Promise<void>((resolve) => {
      for (const event of ['drain', 'error', 'close']) this.stream.once(event, () => resolve());
    });
  }

  /** Resolves when everything was written. */
  async end(): Promise<void> {
    if (this.isGone || this.stream.writableLength === 0) return;
    await new Promise<void>((resolve) => this.stream.write('', () => resolve()));
  }
}
