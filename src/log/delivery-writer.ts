import { constants } from 'node:fs';
import { copyFile, type FileHandle, open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ExportRequest } from '../otlp/export-request.js';
import type { OtlpCodec } from '../otlp/otlp-codec.js';
import { RecordsToRequests } from '../otlp/records-to-request.js';
import type { Delivery } from '../record/record-batch.js';
import { formatRecordLine } from '../record/record-line.js';

/** Writes what deliveries bring into one file, which appears under its name when it is closed. */
export interface DeliveryWriter {
  write(delivery: Delivery): Promise<void>;
  /** Completes the file: on disk, under its name. */
  close(): Promise<void>;
  /** Removes what was written; an earlier file of that name stays. */
  abort(): Promise<void>;
}

/** Text that is written at a time, in UTF-16 units; a longer line is written alone. */
const WRITE_LENGTH = 256 * 1024;

/** Writes records as the engine's JSONL. Telemetry of other services is left out. */
export class JsonlWriter implements DeliveryWriter {
  /** @throws when the file cannot be created. */
  static async create(path: string): Promise<JsonlWriter> {
    return new JsonlWriter(await ReplacingFile.create(path));
  }

  private constructor(private readonly file: ReplacingFile) {}

  async write({ batches }: Delivery): Promise<void> {
    let text = '';
    for (const { records } of batches) {
      for (const record of records) {
        text += `${formatRecordLine(record)}\n`;
        if (text.length < WRITE_LENGTH) continue;
        await this.file.write(Buffer.from(text));
        text = '';
      }
    }
    if (text !== '') await this.file.write(Buffer.from(text));
  }

  close(): Promise<void> {
    return this.file.commit();
  }

  abort(): Promise<void> {
    return this.file.abort();
  }
}

const LINE_BREAK = Buffer.from('\n');

/**
 * Writes records as OTLP JSON lines: each line one export request. Telemetry of other services is written unchanged.
 * Stores the starts of spans that have not ended yet.
 */
export class OtlpJsonWriter implements DeliveryWriter {
  private readonly requests = new RecordsToRequests();

  /**
   * @param json OTLP's JSON
   * @throws when the file cannot be created.
   */
  static async create(path: string, json: OtlpCodec): Promise<OtlpJsonWriter> {
    return new OtlpJsonWriter(await ReplacingFile.create(path), json);
  }

  private constructor(
    private readonly file: ReplacingFile,
    private readonly json: OtlpCodec,
  ) {}

  async write({ batches, passthrough }: Delivery): Promise<void> {
    for (const batch of batches) await this.writeRequests(this.requests.push(batch));
    for (const { body } of passthrough) await this.file.write(Buffer.from(body), LINE_BREAK);
  }

  async close(): Promise<void> {
    await this.writeRequests(this.requests.finish());
    await this.file.commit();
  }

  abort(): Promise<void> {
    return this.file.abort();
  }

  private async writeRequests(requests: readonly ExportRequest[]): Promise<void> {
    if (requests.length === 0) return;
    await this.file.write(...requests.flatMap((request) => [this.json.encode(request), LINE_BREAK]));
  }
}

/**
 * A file that appears under its name only when it is complete and on disk, in place of an earlier one. Until then it is
 * `<path>.partial`, which a later attempt overwrites; two writers of one path at a time are the caller's mistake.
 */
export class ReplacingFile {
  private written = 0;
  private isOpen = true;

  /** @throws when `<path>.partial` cannot be created. */
  static async create(path: string): Promise<ReplacingFile> {
    return new ReplacingFile(path, await open(partialPath(path), 'w'));
  }

  /** Begins with the first bytes of the file that has the name now. @throws when that cannot be read, or as `create`. */
  static async startingWith(path: string, keptBytes: number): Promise<ReplacingFile> {
    const partial = partialPath(path);
    // Where the file system can, both share their blocks until one is written.
    await copyFile(path, partial, constants.COPYFILE_FICLONE);
    const file = new ReplacingFile(path, await open(partial, 'a'));
    file.written = keptBytes;
    try {
      await file.handle.truncate(keptBytes);
    } catch (error) {
      await file.abort();
      throw error;
    }
    return file;
  }

  private constructor(
    private readonly path: string,
    private readonly handle: FileHandle,
  ) {}

  /** Bytes written so far. */
  get length(): number {
    return this.written;
  }

  async write(...parts: readonly Uint8Array[]): Promise<void> {
    const [first] = parts;
    const bytes = parts.length === 1 && first !== undefined ? first : Buffer.concat(parts);
    await this.handle.writeFile(bytes);
    this.written += bytes.length;
  }

  /** Syncs the file, gives it its name and makes the name durable. */
  async commit(): Promise<void> {
    await this.handle.sync();
    await this.close();
    await rename(partialPath(this.path), this.path);
    const folder = await open(dirname(this.path), 'r');
    try {
      await folder.sync();
    } finally {
      await folder.close();
    }
  }

  /** Removes what was written; an earlier file of that name stays. */
  async abort(): Promise<void> {
    await this.close();
    await rm(partialPath(this.path), { force: true });
  }

  private async close(): Promise<void> {
    if (!this.isOpen) return;
    this.isOpen = false;
    await this.handle.close();
  }
}

function partialPath(path: string): string {
  return `${path}.partial`;
}
