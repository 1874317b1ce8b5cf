import type { Logger } from '../component/logger.js';
import type { Signal } from '../record/record-batch.js';
import type { ForeignLogReader } from '../sink/foreign-log.js';
import type { CursorStore, ForeignCursor } from '../store/cursor-store.js';
import type { Destination } from './destination.js';
import type { ExportLane } from './export-lane.js';

/** Forwards the telemetry of other services to one destination, one message after the other, from its cursor on. */
export class ForeignForwarder {
  private cursor: ForeignCursor | undefined;
  private running: Promise<void> | undefined;
  private isWokenAgain = false;
  private hasMore = false;
  private hasLoggedFault = false;

  constructor(
    private readonly deps: {
      readonly destination: Destination;
      readonly lanes: Readonly<Record<Signal, ExportLane>>;
      readonly reader: ForeignLogReader;
      readonly cursors: CursorStore;
      readonly logger: Logger;
      /** Called whenever it has come to rest. */
      readonly onRest: () => void;
    },
    private readonly abort: AbortSignal,
  ) {}

  /** @param isNew the destination was registered just now: what is kept already is not for it. */
  async start(isNew: boolean): Promise<void> {
    const { cursors, destination, reader } = this.deps;
    this.cursor = await cursors.findForeign(destination.name);
    if (this.cursor !== undefined || !isNew) return;
    this.cursor = await reader.end();
    if (this.cursor !== undefined) await cursors.saveForeign(destination.name, this.cursor);
  }

  get isResting(): boolean {
    return this.running === undefined;
  }

  /** Whether everything was forwarded that was there. */
  get isDrained(): boolean {
    return this.isResting && !this.hasMore;
  }

  /** There may be something to forward. */
  wake(): void {
    this.hasMore = true;
    if (this.running !== undefined) {
      this.isWokenAgain = true;
      return;
    }
    this.running = this.run();
  }

  /** Resolves when nothing is under way. */
  async rest(): Promise<void> {
    await this.running;
  }

  private async run(): Promise<void> {
    do {
      this.isWokenAgain = false;
      try {
        this.hasMore = !(await this.forwardAll());
      } catch (error) {
        this.fault(error);
      }
    } while (this.isWokenAgain && !this.abort.aborted);
    this.running = undefined;
    this.deps.onRest();
  }

  /** Whether it came to the end. */
  private async forwardAll(): Promise<boolean> {
    const { destination, lanes, reader, cursors } = this.deps;
    for await (const entry of reader.read(this.cursor)) {
      if (this.abort.aborted) return false;
      const lane = lanes[entry.signal];
      if (lane.state === 'waiting') return false;
      if (lane.state === 'ready' && destination.forward !== undefined) {
        const result = await destination.forward(entry.signal, entry.body, this.abort);
        if (this.abort.aborted && result.kind === 'retryable') return false;
        if (!lane.settle(result, 1, 'forwarded')) return false;
      }
      this.cursor = entry.next;
      await cursors.saveForeign(destination.name, entry.next);
    }
    return true;
  }

  private fault(error: unknown): void {
    if (this.hasLoggedFault) return;
    this.hasLoggedFault = true;
    this.deps.logger.error(
      { destination: this.deps.destination.name, error: error instanceof Error ? error.message : String(error) },
      'telemetry of other services could not be forwarded; it is tried again when more comes',
    );
  }
}
