import { join } from 'node:path';
import type { TraceId } from '../record/ids.js';
import type { Resource } from '../record/resource.js';
import { openIfThere } from '../sink/open-if-there.js';
import { readResourceIndex } from '../sink/read-resource-index.js';
import { LOG_FILE } from '../sink/trace-log.js';
import type { LoggedLines } from './logged-lines.js';

/** Reads record logs as they stand, line by line, without making records of them. */
export interface LineSource {
  /**
   * Lends the whole lines from one offset up to another: about 1 MiB, but one line at least; none where there is none.
   * @param use is called once with them; they are not to be read any more when it has returned
   * @returns what it returned
   */
  read<T>(
    traceId: TraceId,
    fromOffset: number,
    toOffset: number,
    use: (lines: readonly LoggedLines[]) => T,
  ): Promise<T>;
}

/** Bytes that are read at once; where no line ends in them, twice as many, and so on. */
const CHUNK_BYTES = 1024 * 1024;
const LINE_BREAK = 0x0a;

/** Chunks whose memory is kept between reads: as many destinations may read at once before more is asked for. */
const MAX_SPARES = 4;

/** The lines of record logs on disk. What was just appended comes from the operating system's memory. */
export class RecordLogLines implements LineSource {
  /** Memory of chunks between reads: a megabyte for each would have the collector at work all the time. */
  private readonly spares: Buffer[] = [];

  /** @param intern gives one object for equal resources, so that what is made of a resource is made once. */
  constructor(
    private readonly dataFolder: string,
    private readonly intern: (resource: Resource) => Resource,
  ) {}

  async read<T>(
    traceId: TraceId,
    fromOffset: number,
    toOffset: number,
    use: (lines: readonly LoggedLines[]) => T,
  ): Promise<T> {
    const folder = join(this.dataFolder, 'runs', traceId);
    const memory = this.spares.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
    try {
      const lines = await readWholeLines(join(folder, LOG_FILE), fromOffset, toOffset, memory);
      return use(lines.length === 0 ? [] : await this.withResources(folder, fromOffset, lines));
    } finally {
      if (this.spares.length < MAX_SPARES) this.spares.push(memory);
    }
  }

  private async withResources(folder: string, fromOffset: number, lines: Buffer): Promise<readonly LoggedLines[]> {
    // Read after the lines, so that it knows the resource of each.
    const index = await readResourceIndex(folder);
    const endOffset = fromOffset + lines.length;
    const starts = index.between(fromOffset, endOffset);
    return starts.map(({ offset, resource }, number) => ({
      resource: this.intern(resource),
      offset,
      lines: lines.subarray(offset - fromOffset, (starts[number + 1]?.offset ?? endOffset) - fromOffset),
    }));
  }
}

/** @param memory of one chunk, which is used where that is enough */
async function readWholeLines(path: string, fromOffset: number, toOffset: number, memory: Buffer): Promise<Buffer> {
  const handle = await openIfThere(path);
  if (handle === undefined) return Buffer.alloc(0);
  try {
    for (let wanted = CHUNK_BYTES; ; wanted *= 2) {
      const byteCount = Math.min(wanted, toOffset - fromOffset);
      const bytes = byteCount <= memory.length ? memory : Buffer.allocUnsafeSlow(byteCount);
      const { bytesRead } = await handle.read(bytes, 0, byteCount, fromOffset);
      const end = bytes.subarray(0, bytesRead).lastIndexOf(LINE_BREAK) + 1;
      if (end > 0 || bytesRead < wanted) return bytes.subarray(0, end);
    }
  } finally {
    await handle.close();
  }
}
