import type { Clock } from '../../component/clock.js';
import type { Signal } from '../../record/record-batch.js';
import type { Reject } from '../../source/record-source.js';
import { RejectFile } from '../../source/reject-file.js';
import type { Notices } from './notices.js';

/** How much of a request that cannot be read is kept, in bytes: as base64 about as much as of a line. */
const KEPT_BYTES = 3 * 1024;

/** Telemetry of a command that could not be read: kept in a file, and counted. */
export class CommandRejects {
  private readonly file: RejectFile;
  private count = 0;

  /** @param path of the file that keeps them */
  constructor(
    path: string,
    clock: Clock,
    private readonly notices: Notices,
  ) {
    this.file = new RejectFile(path, clock, (trouble) => notices.say(trouble));
  }

  /** @param path of the file in which they stand */
  async addLines(path: string, rejects: readonly Reject[]): Promise<void> {
    for (const { count } of rejects) this.count += count;
    await this.file.add(path, rejects);
  }

  /** A request that was answered before it was read. */
  async addRequest(signal: Signal, bytes: Uint8Array, reason: string): Promise<void> {
    const text = Buffer.from(bytes.subarray(0, KEPT_BYTES)).toString('base64');
    this.count += 1;
    await this.file.add('OTLP', [{ place: `POST /v1/${signal}`, reason, count: 1, text }]);
  }

  /** Says how many there were, if there were any. */
  say(): void {
    if (this.count === 0) return;
    this.notices.say(`lines or requests of telemetry that cannot be read: ${this.count}, kept in ${this.file.path}`);
  }
}
