import type { Timer } from '../component/clock.js';
import type { TraceId } from '../record/ids.js';
import type { Signal } from '../record/record-batch.js';
import type { RunSummary } from '../run/run-summary.js';
import type { LoggedRecord } from '../sink/record-log.js';
import type { ExportCursor } from '../store/cursor-store.js';
import type { MappedItem } from './mapped-item.js';
import type { RunReplay } from './run-replay.js';

/** Records of the look-ahead, and how many bytes of it they took. */
export interface KeptRecords {
  readonly records: readonly LoggedRecord[];
  readonly bytes: number;
}

/** As much as is taken from the look-ahead at once, and about as much as is read from a log at once. */
const MAX_CHUNK_BYTES = 1024 * 1024;

/**
 * One run on its way to one destination. Everything but the cursor can be thrown away at any time: it is found again by
 * reading the record log from its start.
 */
export class ExportRun {
  /** `undefined` until it was looked up. */
  cursor: ExportCursor | undefined;
  /** The mapper and where it stands; `undefined` while the run is closed. */
  replay: RunReplay | undefined;
  /** What the mapper gave and was not sent; at most what one chunk of records gave, for each signal. */
  readonly queues: Readonly<Record<Signal, MappedItem[]>> = { traces: [], logs: [] };
  /** Signals whose items were passed over while their lane was waiting; they are found again by a new replay. */
  readonly missed = new Set<Signal>();
  /** Length of the log at which a signal's last items were sent. */
  readonly doneAtBytes = new Map<Signal, number>();
  /** The run's summary once it is finished; `undefined` when it is open or not known. */
  finished: RunSummary | undefined;
  hasLookedUpSummary = false;
  /** Length of the log as far as the worker was told. */
  knownBytes = 0;
  /** Monotonic time of the first batch that was taken since the run was opened; `undefined` while it only replays. */
  progressMs: number | undefined;
  lastTurnMs = 0;
  failedTurns = 0;
  /** There may be records to read, spans to let go, or an end to send. */
  isBehind = true;
  /** Length of the log for which the mapper has given its last items, which are being sent; `undefined` before. */
  closingAtBytes: number | undefined;
  isQueued = false;
  isInTurn = false;
  /** Woken during its turn: there is more to do after it. */
  isWokenAgain = false;
  quietTimer: Timer | undefined;
  /** Records that were just appended and follow on what the mapper has read; kept to save reading them again. */
  private lookAhead: (readonly LoggedRecord[])[] = [];
  lookAheadBytes = 0;

  /** @param lastAppendMs monotonic time of the last append, or of the first time that the worker heard of the run. */
  constructor(
    readonly traceId: TraceId,
    public lastAppendMs: number,
  ) {}

  /** Offset up to which the mapper has read. */
  get readOffset(): number {
    return this.replay?.readOffset ?? 0;
  }

  get hasQueued(): boolean {
    return this.queues.traces.length > 0 || this.queues.logs.length > 0;
  }

  /** Bytes of the log of which not everything was sent. Held spans count from the first that is held. */
  get lagBytes(): number {
    if (this.cursor === undefined) return this.knownBytes;
    // A signal without items leaves its cursor behind; where nothing waits to be sent, reading is the measure.
    const waits = this.hasQueued || this.missed.size > 0 || this.replay === undefined || this.replay.heldCount > 0;
    if (!waits) return Math.max(0, this.knownBytes - this.readOffset);
    return Math.max(0, this.knownBytes - Math.min(this.cursor.tracesOffset, this.cursor.logsOffset));
  }

  /** Keeps appended records if they follow on what is read or kept. Returns the bytes that it keeps more. */
  keep(records: readonly LoggedRecord[], roomBytes: number): number {
    const first = records[0];
    const last = records.at(-1);
    if (first === undefined || last === undefined) return 0;
    const bytes = last.endOffset - first.offset;
    if (first.offset !== this.readOffset + this.lookAheadBytes || bytes > roomBytes) return 0;
    this.lookAhead.push(records);
    this.lookAheadBytes += bytes;
    return bytes;
  }

  /** The records kept for the place where the mapper stands, at most about a chunk; `undefined` when they have to be read. */
  takeKept(): KeptRecords | undefined {
    const records: LoggedRecord[] = [];
    let bytes = 0;
    while (bytes < MAX_CHUNK_BYTES) {
      const next = this.lookAhead.shift();
      if (next === undefined) break;
      for (const record of next) records.push(record);
      bytes += (next.at(-1)?.endOffset ?? 0) - (next[0]?.offset ?? 0);
    }
    this.lookAheadBytes -= bytes;
    return bytes === 0 ? undefined : { records, bytes };
  }

  /** What waits for a lane makes room for what can be sent; it is found again by a new replay. */
  passOverQueued(): void {
    for (const signal of ['traces', 'logs'] as const) {
      if (this.queues[signal].length === 0) continue;
      this.queues[signal].length = 0;
      this.missed.add(signal);
    }
  }

  /** Throws away what can be found again; what was missed stays known. Returns the look-ahead bytes that it gave back. */
  close(): number {
    const bytes = this.lookAheadBytes;
    this.quietTimer?.cancel();
    this.quietTimer = undefined;
    this.closingAtBytes = undefined;
    this.progressMs = undefined;
    this.replay = undefined;
    this.queues.traces.length = 0;
    this.queues.logs.length = 0;
    this.lookAhead = [];
    this.lookAheadBytes = 0;
    return bytes;
  }
}
