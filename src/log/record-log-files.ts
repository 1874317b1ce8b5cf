import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { errorCode } from '../core/errors.js';
import { MAX_TEXT_BYTES, openIfThere, readLines, type SplitLines, textOf, wholeLinesLength } from '../core/lines.js';
import { parseRecordLine, RecordParseError } from '../record/record-line.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { LOG_FILE, RESOURCES_FILE } from './append-file.js';
import type { LoggedRecord, LogRange, RecordLogReader } from './record-log.js';
import { ResourceIndex } from './resource-index.js';

/** Is notified of a line in a record log that is not a record: damaged by the disk, or edited. */
export type DamageReport = (traceId: TraceId, offset: number, reason: string) => void;

/** Reads record logs from their files, also while they are written. Damaged lines are reported and skipped. */
export class RecordLogFiles implements RecordLogReader {
  /**
   * @param dataFolder the data folder; traces are in its `runs/`
   * @param durableLength length of a log that is open for appending, so that nothing is read before it is durable;
   *   `undefined` where it is not open
   */
  constructor(
    private readonly dataFolder: string,
    private readonly onDamage: DamageReport,
    private readonly durableLength: (traceId: TraceId) => number | undefined = () => undefined,
  ) {}

  async *read(traceId: TraceId, range: LogRange): AsyncIterable<readonly LoggedRecord[]> {
    const folder = this.folderOf(traceId);
    const toOffset = Math.min(
      range.toOffset ?? Number.POSITIVE_INFINITY,
      this.durableLength(traceId) ?? Number.POSITIVE_INFINITY,
    );
    const chunks = readLines(join(folder, LOG_FILE), { fromOffset: range.fromOffset, toOffset });
    let index: ResourceIndex | undefined;
    for await (const found of chunks) {
      // Read after the chunk, so that the resource of every record in it is known.
      index = await readResourceIndex(folder);
      yield this.parseLines(traceId, found, index, range.isWithinLine === true ? range.fromOffset : undefined);
    }
  }

  async lengthBytes(traceId: TraceId): Promise<number> {
    const durable = this.durableLength(traceId);
    if (durable !== undefined) return durable;
    const handle = await openIfThere(join(this.folderOf(traceId), LOG_FILE));
    if (handle === undefined) return 0;
    try {
      return await wholeLinesLength(handle, (await handle.stat()).size);
    } finally {
      await handle.close();
    }
  }

  private folderOf(traceId: TraceId): string {
    return join(this.dataFolder, 'runs', traceId);
  }

  /** @param partOffset where a line begins of which only the end was read */
  private parseLines(
    traceId: TraceId,
    { lines, tooLong }: SplitLines,
    index: ResourceIndex,
    partOffset: number | undefined,
  ): LoggedRecord[] {
    for (const { offset } of tooLong) this.onDamage(traceId, offset, `longer than ${MAX_TEXT_BYTES} bytes`);
    const records: LoggedRecord[] = [];
    for (const line of lines) {
      const { offset, endOffset } = line;
      if (offset === partOffset) continue;
      try {
        records.push({ record: parseRecordLine(textOf(line)), resource: index.at(offset), offset, endOffset });
      } catch (error) {
        if (!(error instanceof RecordParseError)) throw error;
        this.onDamage(traceId, offset, error.message);
      }
    }
    return records;
  }
}

/** Reads from a trace's folder which resource each part of its log has; an empty index if there is none. */
export async function readResourceIndex(folder: string): Promise<ResourceIndex> {
  try {
    return ResourceIndex.parse(await readFile(join(folder, RESOURCES_FILE), 'utf8'));
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return new ResourceIndex();
    throw error;
  }
}

/** Lists the traces that have a folder below `<data>/runs`; none where that is not there yet. */
export async function listTraces(dataFolder: string): Promise<readonly TraceId[]> {
  try {
    return (await readdir(join(dataFolder, 'runs'))).flatMap((name) => parseTraceId(name) ?? []);
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return [];
    throw error;
  }
}
