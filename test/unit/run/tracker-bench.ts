import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JsonlRecordLog } from '../../../src/log/jsonl-record-log.js';
import { PassthroughSegments } from '../../../src/log/passthrough-segments.js';
import type { LoggedRecord, RecordLogReader } from '../../../src/log/record-log.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import { UNKNOWN_RESOURCE } from '../../../src/record/attributes.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { LocalStepRegistry } from '../../../src/run/local-step-registry.js';
import { RunFile } from '../../../src/run/run-document.js';
import type { RunEvent, RunListener } from '../../../src/run/run-event.js';
import { RunTracker } from '../../../src/run/run-tracker.js';
import { RUN_TRACKER_DEFAULTS, type RunTrackerConfig } from '../../../src/run/run-tracker-config.js';
import type { State } from '../../../src/storage/state.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

/** Keeps what it is notified of; rejects while `isBroken`. */
export class RecordingListener implements RunListener {
  readonly events: RunEvent[] = [];
  isBroken = false;

  async onRunEvent(event: RunEvent): Promise<void> {
    if (this.isBroken) throw new Error('disk full');
    this.events.push(event);
  }

  /** One word or more an event: `started`, `ended 1 success`, `revised 1 canceled`, `finished`. */
  get story(): string[] {
    return this.events.map((event) => {
      if (event.type !== 'invocationEnded') return event.type;
      return `${event.isRevision ? 'revised' : 'ended'} ${event.invocation.index} ${event.invocation.verdict}`;
    });
  }
}

/** A tracker with a real record log and a real store in a folder of its own; time is moved by hand. */
export class TrackerBench {
  static async open(config: Partial<RunTrackerConfig> = {}): Promise<TrackerBench> {
    const folder = await mkdtemp(join(tmpdir(), 'run-tracker-'));
    const bench = new TrackerBench(folder, { ...RUN_TRACKER_DEFAULTS, ...config });
    await bench.begin();
    return bench;
  }

  readonly clock = new FakeClock();
  readonly logger = new RecordingLogger();
  listener = new RecordingListener();
  readonly furtherListeners: RunListener[] = [];
  /** Traces whose log the tracker has read, in that order. */
  readonly readTraceIds: TraceId[] = [];
  private state: State | undefined;
  private log: JsonlRecordLog | undefined;
  private current: RunTracker | undefined;
  private currentBook: LocalStepRegistry | undefined;

  private constructor(
    readonly folder: string,
    private readonly config: RunTrackerConfig,
  ) {}

  get tracker(): RunTracker {
    if (this.current === undefined) throw new Error('the bench is not open');
    return this.current;
  }

  /** Where commands are said to begin and end. */
  get registry(): LocalStepRegistry {
    if (this.currentBook === undefined) throw new Error('the bench is not open');
    return this.currentBook;
  }

  get reader(): RecordLogFiles {
    return new RecordLogFiles(
      this.folder,
      () => {},
      (traceId) => this.log?.durableLength(traceId),
    );
  }

  async append(records: readonly LoggedRecord[]): Promise<void> {
    const batches = records.map(({ record, resource }) => ({ traceId: record.traceId, resource, records: [record] }));
    await this.log?.consume({ batches, passthrough: [] });
    await this.tracker.idle();
  }

  /** Records become durable, and the process dies before anything is made of them. */
  async appendUnseen(records: readonly LoggedRecord[]): Promise<void> {
    await this.tracker.shutdown(new AbortController().signal);
    await this.append(records);
  }

  async pass(ms: number): Promise<void> {
    this.clock.advance(ms);
    await this.log?.flushPending();
    await this.tracker.idle();
  }

  /** Stops everything, as a crash would where `isCrash`, and begins anew on the same folder, with a new listener. */
  async restart(isCrash = false): Promise<void> {
    if (!isCrash) await this.tracker.shutdown(new AbortController().signal);
    await this.log?.shutdown(new AbortController().signal);
    // Records that waited for their span's name have just been written.
    await this.tracker.idle();
    await this.registry.shutdown();
    await this.state?.close();
    this.listener = new RecordingListener();
    await this.begin();
  }

  async close(): Promise<void> {
    await this.tracker.shutdown(new AbortController().signal);
    await this.log?.shutdown(new AbortController().signal);
    await this.registry.shutdown();
    await this.state?.close();
    await rm(this.folder, { recursive: true, force: true });
  }

  row(traceId: TraceId) {
    return this.state?.runs.find(traceId);
  }

  private noting(reader: RecordLogReader): RecordLogReader {
    return {
      read: (traceId, range) => {
        this.readTraceIds.push(traceId);
        return reader.read(traceId, range);
      },
      lengthBytes: (traceId) => reader.lengthBytes(traceId),
    };
  }

  private async begin(): Promise<void> {
    const { clock, logger, folder } = this;
    this.state = await openFreshState(join(folder, 'state.db'));
    this.current = new RunTracker(this.config, {
      reader: this.noting(this.reader),
      store: this.state.runs,
      listeners: [this.listener, ...this.furtherListeners],
      steps: this.state.executions,
      clock,
      logger,
      file: new RunFile(folder),
      listTraces: async () => (await readdir(join(folder, 'runs')).catch(() => [])) as TraceId[],
    });
    const { executions, runs } = this.state;
    const { current } = this;
    this.currentBook = new LocalStepRegistry({ store: executions, runs, listeners: [current], clock, logger });
    this.log = new JsonlRecordLog(
      { dataFolder: folder, durability: 'os' },
      {
        clock,
        logger,
        passthrough: new PassthroughSegments(join(folder, 'foreign'), { isSynced: false, listeners: [] }),
        listeners: [this.current],
      },
    );
    await this.current.start();
    await this.currentBook.start();
    await this.log.start();
    await this.current.idle();
  }
}

/** The records as another trace's. */
export function asTrace(records: readonly LoggedRecord[], traceId: TraceId): LoggedRecord[] {
  return records.map(({ record: { line: _line, ...record }, ...rest }) => ({
    ...rest,
    resource: UNKNOWN_RESOURCE,
    record: { ...record, traceId },
  }));
}
