import { createWriteStream } from 'node:fs';
import { appendFile, mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { LOG_FILE, RESOURCES_FILE } from '../../log/append-file.js';
import type { TraceId } from '../../record/telemetry-record.js';
import type { ObjectStore } from '../../storage/bucket/object-store.js';
import type { JournalStore, SharedFile } from '../../storage/journal-store.js';

/** The prefix of the names of a log's segments. */
export const SEGMENTS_FOLDER = 'segments/';

/** Returns the name of the segment of a log that begins at an offset. */
export function segmentName(firstByte: number): string {
  return `${SEGMENTS_FOLDER}${String(firstByte).padStart(16, '0')}`;
}

/** Encodes a segment of a log: a line with both lengths, the lines of resources, the lines of the log. */
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

/** How far a log is in the bucket. */
export interface StoredLength {
  readonly logBytes: number;
  readonly resourcesBytes: number;
}

/** What copies are made of. */
export interface LogCopyDeps {
  readonly bucket: Pick<ObjectStore, 'open' | 'get'>;
  readonly journal: Pick<JournalStore, 'filesOf'>;
}

/** How often a copy is made again because objects were replaced meanwhile. */
const MAX_TRIES = 5;
const EMPTY: StoredLength = { logBytes: 0, resourcesBytes: 0 };

/**
 * A trace's record log on this machine, made of what the database names in the bucket: the whole log, if there is one, and the
 * segments behind it. Only the owner of the trace names any, so uploads of a process that had lost it are not among them.
 */
export class LogCopy {
  private length = EMPTY;
  /** The length of the log that is in the bucket as a whole, with which the copy begins. */
  private beginning = 0;
  /** The keys of the objects that it is made of. */
  private keys: string[] = [];

  /** @param folder of the trace */
  constructor(
    private readonly folder: string,
    private readonly traceId: TraceId,
    private readonly deps: LogCopyDeps,
  ) {}

  get stored(): StoredLength {
    return this.length;
  }

  get wholeBytes(): number {
    return this.beginning;
  }

  /** Brings it to what is in the bucket now; one call at a time. @throws ArtifactError, StoreError, Error */
  async refresh(): Promise<void> {
    for (let tries = 1; !(await this.bring()); tries += 1) {
      await this.remove();
      if (tries >= MAX_TRIES) throw new Error(`segments of trace ${this.traceId} are missing in the bucket`);
    }
  }

  async remove(): Promise<void> {
    await rm(this.folder, { recursive: true, force: true });
    this.length = EMPTY;
    this.beginning = 0;
    this.keys = [];
  }

  /** @returns false where something that it is made of was replaced, or has gone */
  private async bring(): Promise<boolean> {
    const { bucket, journal } = this.deps;
    const files = await journal.filesOf(this.traceId);
    const whole = files.filter(({ name }) => name === LOG_FILE);
    const segments = files.filter(({ name }) => name.startsWith(SEGMENTS_FOLDER));
    const parts = [...whole, ...segments.sort((a, b) => (a.name < b.name ? -1 : 1))];
    if (this.keys.some((key, index) => key !== parts[index]?.objectKey)) return false;
    if (this.keys.length === 0) {
      await this.remove();
      await mkdir(this.folder, { recursive: true });
    }
    for (const { name, objectKey } of parts.slice(this.keys.length)) {
      if (name === LOG_FILE) {
        if (!(await this.begin(files))) return false;
      } else {
        const bytes = name === segmentName(this.length.logBytes) ? await bucket.get(objectKey) : undefined;
        if (bytes === undefined) return false;
        await this.append(decodeSegment(bytes));
      }
      this.keys.push(objectKey);
    }
    return true;
  }

  private async begin(files: readonly SharedFile[]): Promise<boolean> {
    const lengths = { [LOG_FILE]: 0, [RESOURCES_FILE]: 0 };
    for (const { name, objectKey, sizeBytes } of files) {
      if (name !== LOG_FILE && name !== RESOURCES_FILE) continue;
      const content = await this.deps.bucket.open(objectKey);
      if (content === undefined) return false;
      await pipeline(content, createWriteStream(join(this.folder, name)));
      lengths[name] = sizeBytes;
    }
    this.length = { logBytes: lengths[LOG_FILE], resourcesBytes: lengths[RESOURCES_FILE] };
    this.beginning = lengths[LOG_FILE];
    return true;
  }

  private async append({ resources, log }: ReturnType<typeof decodeSegment>): Promise<void> {
    const { logBytes, resourcesBytes } = this.length;
    try {
      // The resources first, as the record log has it.
      await appendFile(join(this.folder, RESOURCES_FILE), resources);
      await appendFile(join(this.folder, LOG_FILE), log);
    } catch (error) {
      // How far it got is not known.
      await this.remove();
      throw error;
    }
    this.length = { logBytes: logBytes + log.length, resourcesBytes: resourcesBytes + resources.length };
  }
}
