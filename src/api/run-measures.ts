import { promisify } from 'node:util';
import { deserialize, serialize } from 'node:v8';
import { gunzip, gzip } from 'node:zlib';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import type { RecordLogReader } from '../log/record-log.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { NameLists } from '../redaction/known-names.js';
import type { Redactor } from '../redaction/redactor.js';
import { type CommandDigest, commandDigest, commandErrors } from '../run/measures/command-digest.js';
import type { CommandLog } from '../run/measures/command-log.js';
import type { CommandMeasures } from '../run/measures/run-totals.js';
import type { RunEvent, RunFinder, RunListener } from '../run/run-event.js';
import type { RunSummary } from '../run/verdict.js';
import type { CatalogStep } from '../storage/run-catalog.js';
import type { CommandErrors, MeasuredRun, RunMeasuresStore } from '../storage/run-store.js';

/** The measures of a command, and the trace that it is in. */
export interface StepMeasures {
  readonly traceId: TraceId;
  readonly command: CommandMeasures;
}

/** What measures are read from. */
export interface RunMeasuresDeps {
  readonly store: Pick<RunMeasuresStore, 'isUsed' | 'find' | 'save'>;
  readonly tracker: RunFinder;
  readonly reader: RecordLogReader;
  readonly logger: Logger;
}

/** What a record log adds up to; of a finished trace, this is stored. */
interface TraceMeasures {
  readonly commands: readonly CommandMeasures[];
  /** What a redactor learns from its records. */
  readonly names: NameLists;
}

/** The log records of a trace's commands, by their positions in it from 1. */
type TraceLogs = ReadonlyMap<number, CommandLog>;

/** All that is read of a record log. */
interface ReadTrace extends TraceMeasures {
  readonly logs: TraceLogs;
}

/** A finished trace once more in brief. */
type TraceDigest = readonly CommandDigest[];

/** Traces that wait to be measured at their end; of further ones it is done when somebody first asks for them. */
const MAX_WAITING = 1_000;
/** Stored measures that take more than this, compressed, are not kept in memory, in bytes: those of about 15,000 nodes. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;
/** Nodes in the digests that are kept in memory, those that were asked for last: of some 20 MiB. */
const MAX_KEPT_NODES = 100_000;
/** Traces under way of which what was read is kept in memory: those that were asked for last. */
const MAX_UNDER_WAY = 4;

/**
 * The measures of runs' commands. A finished trace is measured once, from its whole record log, and the result is stored
 * with the names that its texts may show; one that goes on is read on from where it was read to.
 * Once somebody has asked for measures, before this start or since, traces are measured as they finish, one after the other in
 * the background.
 */
export class RunMeasures implements RunListener, Component {
  readonly name = 'measures of runs';
  private hasReaders = false;
  private isStopped = false;
  private readonly waiting = new Set<TraceId>();
  private working: Promise<void> | undefined;
  /** The one of them that is being measured. */
  private current: TraceId | undefined;
  /** Traces that are being measured, by their summaries. */
  private readonly measuring = new Map<string, Promise<ReadTrace>>();
  /** Traces under way that somebody asked for, the latest last. */
  private readonly underWay = new Map<TraceId, TraceReading>();

  /** Digests of finished traces by their summaries, which are others when late records come; those asked for last are at the end. */
  private readonly digests = new Map<string, TraceDigest>();
  /** The finished trace that was asked for last, by what is stored of it: somebody goes from page to page of one run. */
  private latest: { readonly content: Uint8Array; readonly measures: TraceMeasures } | undefined;

  constructor(private readonly deps: RunMeasuresDeps) {}

  async start(): Promise<void> {
    this.hasReaders = await this.deps.store.isUsed();
  }

  async shutdown(): Promise<void> {
    this.isStopped = true;
    this.waiting.clear();
    await this.working;
  }

  async onRunEvent({ type, run }: RunEvent): Promise<void> {
    if (type === 'finished' && this.hasReaders) this.measureLater(run.traceId);
  }

  private measureLater(traceId: TraceId): void {
    if (this.isStopped || this.waiting.size >= MAX_WAITING) return;
    this.waiting.add(traceId);
    this.working ??= this.measureWaiting();
  }

  /**
   * Measures the commands of a run's steps, in their order. Of a trace shared with other runs, only the commands of
   * these steps are returned; a step without any data left returns none.
   * @param redactor learns the names of the steps' traces
   * @throws errors of the reader if a log cannot be read; StoreError
   */
  async ofSteps(
    steps: readonly Pick<CatalogStep, 'invocations'>[],
    redactor?: Redactor,
  ): Promise<readonly StepMeasures[]> {
    this.hasReaders = true;
    const invocations = steps.flatMap((step) => step.invocations);
    const wanted = new Set(invocations.map(({ traceId, index }) => `${traceId} ${index}`));
    const measures: StepMeasures[] = [];
    for (const traceId of new Set(invocations.map((one) => one.traceId))) {
      for (const command of await this.ofTrace(traceId, redactor)) {
        if (wanted.has(`${traceId} ${command.invocation.index}`)) measures.push({ traceId, command });
      }
    }
    return measures;
  }

  /** Resolves when none of the steps' traces waits to be measured in the background any more. */
  async whenMeasured(steps: readonly Pick<CatalogStep, 'invocations'>[]): Promise<void> {
    const isAwaited = ({ traceId }: { readonly traceId: TraceId }) =>
      traceId === this.current || this.waiting.has(traceId);
    if (steps.some(({ invocations }) => invocations.some(isAwaited))) await this.working;
  }

  /**
   * Reads the commands of a run's steps in brief, without reading a log. Of a finished trace that has not been measured, this is
   * done in the background, for the next who asks.
   * @returns `undefined` where one of the commands is not measured yet
   * @throws StoreError
   */
  async digestsOf(steps: readonly Pick<CatalogStep, 'invocations'>[]): Promise<readonly CommandDigest[] | undefined> {
    this.hasReaders = true;
    const invocations = steps.flatMap((step) => step.invocations);
    const digests: CommandDigest[] = [];
    for (const traceId of new Set(invocations.map((one) => one.traceId))) {
      const row = await this.deps.store.find(traceId);
      const stored = row === undefined ? undefined : await this.digestIn(row);
      if (stored === undefined) {
        if (row?.state === 'finished') this.measureLater(traceId);
        return undefined;
      }
      const wanted = new Set(invocations.filter((one) => one.traceId === traceId).map(({ index }) => index));
      digests.push(...stored.filter(({ index }) => wanted.has(index)));
    }
    return digests;
  }

  /**
   * Reads the log records of a run's steps, by command. Those of a finished trace are stored beside its measures.
   * @param redactor learns the names of the steps' traces
   * @throws errors of the reader if a log cannot be read; StoreError
   */
  async logsOf(steps: readonly Pick<CatalogStep, 'invocations'>[], redactor: Redactor): Promise<readonly CommandLog[]> {
    this.hasReaders = true;
    const invocations = steps.flatMap((step) => step.invocations);
    const logs = new Map<TraceId, TraceLogs>();
    for (const traceId of new Set(invocations.map((one) => one.traceId))) {
      logs.set(traceId, await this.logsOfTrace(traceId, redactor));
    }
    return invocations.flatMap(({ traceId, index }) => logs.get(traceId)?.get(index) ?? []);
  }

  private async logsOfTrace(traceId: TraceId, redactor: Redactor): Promise<TraceLogs> {
    const row = await this.deps.store.find(traceId);
    const isFinished = row?.state === 'finished';
    const stored = isFinished && row.content !== null ? await unpackLogs(row.content) : undefined;
    if (stored !== undefined) {
      // The names that texts may show are among the measures.
      if (redactor.level !== 'off') await this.ofTrace(traceId, redactor);
      return stored;
    }
    const read = (isFinished ? await this.measureOnce(traceId, row) : undefined) ?? (await this.ofRunning(traceId));
    if (read === undefined) return new Map();
    redactor.learnAll(read.names);
    return read.logs;
  }

  private async ofTrace(traceId: TraceId, redactor?: Redactor): Promise<readonly CommandMeasures[]> {
    const row = await this.deps.store.find(traceId);
    const finished = row?.state === 'finished' ? await this.ofFinished(traceId, row) : undefined;
    const measures = finished ?? (await this.ofRunning(traceId));
    if (measures === undefined) return [];
    redactor?.learnAll(measures.names);
    return measures.commands;
  }

  private async ofRunning(traceId: TraceId): Promise<ReadTrace | undefined> {
    const run = await this.deps.tracker.find(traceId);
    if (run === undefined) return undefined;
    const reading = this.underWay.get(traceId) ?? new TraceReading(this.deps.reader);
    this.underWay.delete(traceId);
    this.underWay.set(traceId, reading);
    const [oldest] = this.underWay.keys();
    if (this.underWay.size > MAX_UNDER_WAY && oldest !== undefined) this.underWay.delete(oldest);
    return await reading.upTo(run);
  }

  /** Reads the measures of a row; `undefined` if it cannot be read. */
  private async ofFinished(traceId: TraceId, row: MeasuredRun): Promise<TraceMeasures | undefined> {
    const stored = row.content === null ? undefined : await this.unpackKept(row.content);
    return stored ?? (await this.measureOnce(traceId, row));
  }

  /** What is stored of a finished trace in brief; comparisons with earlier runs ask for the same ones again and again. */
  private async digestIn({ summary, content }: MeasuredRun): Promise<TraceDigest | undefined> {
    if (content === null) return undefined;
    const known = this.digests.get(summary);
    const digest = known ?? (await unpackDigest(content));
    if (digest === undefined) return undefined;
    this.digests.delete(summary);
    this.digests.set(summary, digest);
    let nodeCount = 0;
    for (const [one, kept] of [...this.digests].reverse()) {
      nodeCount += kept.reduce((sum, { work }) => sum + work.uniqueIds.length, 0);
      if (nodeCount > MAX_KEPT_NODES) this.digests.delete(one);
    }
    return digest;
  }

  private async unpackKept(content: Uint8Array): Promise<TraceMeasures | undefined> {
    if (this.latest !== undefined && Buffer.compare(this.latest.content, content) === 0) return this.latest.measures;
    const measures = await unpack(content);
    if (measures !== undefined) this.latest = content.length > MAX_KEPT_BYTES ? undefined : { content, measures };
    return measures;
  }

  /** Measures a finished trace once for all who ask meanwhile; `undefined` if its row cannot be read. */
  private async measureOnce(traceId: TraceId, row: MeasuredRun): Promise<ReadTrace | undefined> {
    const { parseRun } = await import('../run/parse-run.js');
    const run = parseRun(row.summary);
    if (run === undefined) return undefined;
    const known = this.measuring.get(row.summary);
    if (known !== undefined) return await known;
    const measuring = this.measure(traceId, row.summary, run).finally(() => this.measuring.delete(row.summary));
    this.measuring.set(row.summary, measuring);
    return await measuring;
  }

  private async measure(traceId: TraceId, summary: string, run: RunSummary): Promise<ReadTrace> {
    const { store, reader, logger } = this.deps;
    const reading = this.underWay.get(traceId) ?? new TraceReading(reader);
    this.underWay.delete(traceId);
    const read = await reading.upTo(run);
    try {
      // A log that is gone, or not here as a whole, is read again.
      const isWhole = (await reader.lengthBytes(traceId)) >= run.logBytes;
      const { digest, errors } = await reading.inBrief(read);
      if (isWhole) await store.save(traceId, summary, await pack(digest, read), errors);
    } catch (error) {
      logger.warn({ traceId, error: String(error) }, 'failed to store the measures of a run; they are read again');
    }
    return read;
  }

  private async measureWaiting(): Promise<void> {
    for (const traceId of this.waiting) {
      this.waiting.delete(traceId);
      this.current = traceId;
      try {
        const row = await this.deps.store.find(traceId);
        if (row?.state === 'finished') await this.ofFinished(traceId, row);
      } catch (error) {
        this.deps.logger.warn({ traceId, error: String(error) }, 'failed to measure a run that has finished');
      }
    }
    this.current = undefined;
    this.working = undefined;
  }
}

/** What is read of one trace, with the names that its records teach a redactor. */
class TraceReading {
  private readonly parts: ReturnType<typeof readingParts>;
  private turn: Promise<unknown> = Promise.resolve();

  constructor(reader: RecordLogReader) {
    this.parts = readingParts(reader);
  }

  /** @throws errors of the reader if the log cannot be read */
  upTo(run: RunSummary): Promise<ReadTrace> {
    const measured = this.turn.then(async () => {
      const { reading, names } = await this.parts;
      const commands = await reading.upTo(run);
      return { commands, names: names.lists(), logs: reading.logs };
    });
    this.turn = measured.catch(() => undefined);
    return measured;
  }

  /** Returns the measures in brief, and what went wrong, with texts as they are and without literals. */
  async inBrief({ commands }: TraceMeasures): Promise<{ digest: TraceDigest; errors: readonly CommandErrors[] }> {
    const { learner } = await this.parts;
    const redact = (text: string) => learner.text(text);
    return {
      digest: commands.map((command) => commandDigest(command, redact)),
      errors: commands.flatMap((command) => commandErrors(command, redact) ?? []),
    };
  }
}

/** Loads what reads measures, when they are first asked for. */
async function readingParts(reader: RecordLogReader) {
  const [{ KnownNames }, { learnNames, Redactor: Learner }, { MeasureReading }] = await Promise.all([
    import('../redaction/known-names.js'),
    import('../redaction/redactor.js'),
    import('../run/measures/read-measures.js'),
  ]);
  const names = new KnownNames();
  const learner = new Learner('literals', names);
  return { names, learner, reading: new MeasureReading(reader, (record) => learnNames(record, learner), true) };
}

/** Counts up when measures get other fields: what was stored before is measured again. */
const VERSION = 9;
/**
 * Measures that take more are not stored, in bytes: about 30,000 nodes. They take a tenth of it when compressed. Of those the
 * digest and the log records alone are stored, which are bounded themselves.
 */
const MAX_BYTES = 32 * 1024 * 1024;
/** Bytes of a length before the parts. */
const LENGTH_BYTES = 4;

const compress = promisify(gzip);
const decompress = promisify(gunzip);

/** Packs the lengths of the first two parts, then the digest, the measures (nothing where they are too large) and the log records, each compressed. */
async function pack(digest: TraceDigest, { commands, names, logs }: ReadTrace): Promise<Uint8Array> {
  const brief = await compress(serialize([VERSION, digest]));
  const measures: TraceMeasures = { commands, names };
  const bytes = serialize([VERSION, measures]);
  const full = bytes.byteLength > MAX_BYTES ? Buffer.alloc(0) : await compress(bytes);
  const head = Buffer.alloc(2 * LENGTH_BYTES);
  head.writeUInt32LE(brief.length);
  head.writeUInt32LE(full.length, LENGTH_BYTES);
  return Buffer.concat([head, brief, full, await compress(serialize([VERSION, logs]))]);
}

/** Reads what `pack` made; `undefined` for what another version made, and where it was too large. */
async function unpack(content: Uint8Array): Promise<TraceMeasures | undefined> {
  return await unpacked<TraceMeasures>(partsOf(content)[1]);
}

async function unpackDigest(content: Uint8Array): Promise<TraceDigest | undefined> {
  return await unpacked<TraceDigest>(partsOf(content)[0]);
}

async function unpackLogs(content: Uint8Array): Promise<TraceLogs | undefined> {
  return await unpacked<TraceLogs>(partsOf(content)[2]);
}

/** Returns digest, measures and log records; of what another version made, bytes that are none. */
function partsOf(content: Uint8Array): readonly [digest: Uint8Array, measures: Uint8Array, logs: Uint8Array] {
  const { buffer, byteOffset, byteLength } = content;
  const headBytes = 2 * LENGTH_BYTES;
  if (byteLength < headBytes) return [new Uint8Array(), new Uint8Array(), new Uint8Array()];
  const lengths = new DataView(buffer, byteOffset, headBytes);
  const digestEnd = headBytes + lengths.getUint32(0, true);
  const measuresEnd = digestEnd + lengths.getUint32(LENGTH_BYTES, true);
  return [
    content.subarray(headBytes, digestEnd),
    content.subarray(digestEnd, measuresEnd),
    content.subarray(measuresEnd),
  ];
}

async function unpacked<Content>(bytes: Uint8Array): Promise<Content | undefined> {
  if (bytes.length === 0) return undefined;
  try {
    const [version, content]: [unknown, Content] = deserialize(await decompress(bytes, { maxOutputLength: MAX_BYTES }));
    return version === VERSION ? content : undefined;
  } catch {
    return undefined;
  }
}
