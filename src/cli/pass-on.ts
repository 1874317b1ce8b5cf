import type { Writable } from 'node:stream';

/** Passes bytes on to who reads a stream, and goes on in silence when that has gone: `… | head` is no failure. */
export class PassOn {
  private isGone = false;
  private waiting: (() => void)[] = [];

  constructor(private readonly stream: Writable) {
    const gone = () => {
      this.isGone = true;
      this.goOn();
    };
    stream.on('error', gone);
    stream.on('close', gone);
    stream.on('drain', () => this.goOn());
  }

  /** Resolves when there is room for more, or nobody reads. */
  async write(bytes: Uint8Array): Promise<void> {
    if (this.isGone || bytes.length === 0 || this.stream.write(bytes)) return;
    await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  /** Resolves when everything was written. */
  async end(): Promise<void> {
    if (this.isGone || this.stream.writableLength === 0) return;
    await new Promise<void>((resolve) => this.stream.write('', () => resolve()));
  }

  private goOn(): void {
    const waiting = this.waiting;
    this.waiting = [];
    for (const resolve of waiting) resolve();
  }
}
