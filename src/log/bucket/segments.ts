import { createWriteStream } from 'node:fs';
import { appendFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { Turns } from '../../core/turns.js';
import type { TraceId } from '../../record/telemetry-record.js';
import { type ObjectStore, tracePrefix } from '../../storage/bucket/object-store.js';
import type { JournalStore } from '../../storage/journal-store.js';
import { LOG_FILE, RESOURCES_FILE } from '../trace-log.js';

/** A generation of the group in a key: numbers of one length sort as they count. */
export function generationText(generation: number): string {
  return String(generation).padStart(10, '0');
}

/** The generation of the member that has written an object; 0 where its key does not say. */
export function generationOf(key: string): number {
  return Number(/-(\d{10})$|\/(\d{10})-[^/]+\/[^/]+$/.exec(key)?.slice(1).find(Boolean) ?? 0);
}

/** The key of the part of a log that begins at a byte, as the member of a generation has written it. */
export function segmentKey(traceId: TraceId, firstByte: number, generation: number): string {
  return `${segmentsPrefix(traceId)}${String(firstByte).padStart(16, '0')}-${generationText(generation)}`;
}

function segmentsPrefix(traceId: TraceId): string {
  return `${tracePrefix(traceId)}segments/`;
}

/** A part of a log: a line that says how long both are, the lines of resources, the lines of the log. */
export function encodeSegment(resources: Buffer, log: Buffer): Buffer {
  const header = JSON.stringify({ resourcesBytes: resources.length, logBytes: log.length });
  return Buffer.concat([Buffer.from(`${header}\n`), resources, log]);
}

function decodeSegment(bytes: Buffer): { readonly resources: Buffer; readonly log: Buffer } {
  const from = bytes.indexOf('\n') + 1;
  const header: unknown = JSON.parse(bytes.toString('utf8', 0, from));
  const resourcesBytes = numberIn(header, 'resourcesBytes');
  const logBytes = numberIn(header, 'logBytes');
  const middle = from + resourcesBytes;
  if (bytes.length !== middle + logBytes) throw new Error('a segment of a log in the bucket is not whole');
  return { resources: bytes.subarray(from, middle), log: bytes.subarray(middle) };
}

function numberIn(value: unknown, name: string): number {
  const found = typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
  if (typeof found !== 'number') throw new Error(`a segment of a log in the bucket does not say its ${name}`);
  return found;
}

interface Segment {
  readonly key: string;
  readonly firstByte: number;
  readonly generation: number;
}

function parseKey(key: string): readonly Segment[] {
  const [, firstByte, generation] = /(\d{16})-(\d{10})$/.exec(key) ?? [];
  return firstByte === undefined ? [] : [{ key, firstByte: Number(firstByte), generation: Number(generation) }];
}

/** How far a log is in the bucket. */
export interface StoredLength {
  readonly logBytes: number;
  readonly resourcesBytes: number;
}

/** What copies are made of. */
export interface LogCopyDeps {
  readonly bucket: Pick<ObjectStore, 'open' | 'get' | 'list'>;
  readonly journal: Pick<JournalStore, 'filesOf'>;
}

/** How often a copy is begun anew because objects were replaced meanwhile. */
const MAX_TRIES = 5;
const EMPTY: StoredLength = { logBytes: 0, resourcesBytes: 0 };

/**
 * A trace's record log on this machine, made of what is in the bucket: the whole log, if there is one, and the segments behind
 * it. Of two that begin at the same byte the one of the later generation counts, and none of an earlier one follows it: what a
 * member wrote that had lost the partition without knowing is passed over.
 */
export class LogCopy {
  private length = EMPTY;
  private generation = 0;
  /** Length of the log that is in the bucket as a whole, which it began with. */
  wholeBytes = 0;
  /** Key of that; `null` for none. */
  private whole: string | null | undefined;
  private applied: Segment[] = [];
  /** When it was brought to what is in the bucket last, in monotonic milliseconds; for whoever does that. */
  refreshedMs = Number.NEGATIVE_INFINITY;
  private readonly turns = new Turns();

  /** @param folder of the trace */
  constructor(
    readonly folder: string,
    readonly traceId: TraceId,
    private readonly deps: LogCopyDeps,
  ) {}

  get stored(): StoredLength {
    return this.length;
  }

  get sizeBytes(): number {
    return this.length.logBytes;
  }

  /** Brings it to what is in the bucket now. @throws ArtifactError, StoreError, Error */
  refresh(): Promise<void> {
    return this.turns.run(async () => {
      for (let tries = 1; !(await this.bring()); tries += 1) {
        await this.reset();
        if (tries >= MAX_TRIES) throw new Error(`segments of trace ${this.traceId} are missing in the bucket`);
      }
    });
  }

  /** Removes it. */
  remove(): Promise<void> {
    return this.turns.run(() => this.reset());
  }

  /** @returns false where something was replaced meanwhile */
  private async bring(): Promise<boolean> {
    const { bucket, journal } = this.deps;
    // Segments first: they are removed when the whole log is named.
    const segments = (await bucket.list(segmentsPrefix(this.traceId))).flatMap(parseKey);
    const files = await journal.filesOf(this.traceId);
    const whole = files.find(({ name }) => name === LOG_FILE)?.objectKey ?? null;
    if (this.whole !== whole || this.isOvertaken(segments)) {
      await this.reset();
      await mkdir(this.folder, { recursive: true });
      for (const { name, objectKey, sizeBytes } of files) {
        if (name !== LOG_FILE && name !== RESOURCES_FILE) continue;
        const content = await bucket.open(objectKey);
        if (content === undefined) return false;
        await pipeline(content, createWriteStream(join(this.folder, name)));
        const part = name === LOG_FILE ? { logBytes: sizeBytes } : { resourcesBytes: sizeBytes };
        this.length = { ...this.length, ...part };
      }
      this.generation = generationOf(whole ?? '');
      this.whole = whole;
      this.wholeBytes = this.length.logBytes;
    }
    for (let next = this.next(segments); next !== undefined; next = this.next(segments)) {
      const bytes = await bucket.get(next.key);
      if (bytes === undefined) return false;
      await this.append(next, decodeSegment(bytes));
    }
    return true;
  }

  private next(segments: readonly Segment[]): Segment | undefined {
    return segments
      .filter((one) => one.firstByte === this.length.logBytes && one.generation >= this.generation)
      .sort((a, b) => b.generation - a.generation)[0];
  }

  private isOvertaken(segments: readonly Segment[]): boolean {
    return this.applied.some((used) =>
      segments.some((one) => one.firstByte === used.firstByte && one.generation > used.generation),
    );
  }

  private async append(segment: Segment, { resources, log }: ReturnType<typeof decodeSegment>): Promise<void> {
    const { logBytes, resourcesBytes } = this.length;
    // The resources first, as the record log has it.
    await appendFile(join(this.folder, RESOURCES_FILE), resources);
    await appendFile(join(this.folder, LOG_FILE), log);
    this.length = { logBytes: logBytes + log.length, resourcesBytes: resourcesBytes + resources.length };
    this.generation = segment.generation;
    this.applied.push(segment);
  }

  private async reset(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    this.length = EMPTY;
    this.generation = 0;
    this.whole = undefined;
    this.wholeBytes = 0;
    this.applied = [];
  }
}
