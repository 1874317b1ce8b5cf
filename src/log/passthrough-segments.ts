import { readdir, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { closeOnFailure, errorCode } from '../core/errors.js';
import { readLines, textOf } from '../core/lines.js';
import { Turns } from '../core/turns.js';
import type { PassthroughBatch, Signal } from '../record/record-batch.js';
import { AppendFile, makeFolder, syncFolder } from './append-file.js';

/** A segment that has grown beyond this many bytes is followed by a new one. */
const SEGMENT_BYTES = 64 * 1024 * 1024;
const SEGMENT = /^\d{8}\.otlp\.jsonl$/;

/** A file of other services' telemetry that nothing more is written to. */
export interface EndedSegment {
  readonly segment: string;
  readonly sizeBytes: number;
  readonly writtenUnixMs: number;
}

/**
 * Telemetry of other services received on the same endpoint: one OTLP JSON message a line, in `foreign/00000001.otlp.jsonl`
 * and so on. Stored unchanged, apart from the runs, and forwarded unchanged. There is no deduplication:
 * what is sent twice is forwarded twice, as any OTLP relay does.
 */
export class PassthroughSegments implements PassthroughLogReader {
  private file: AppendFile | undefined;
  private segment = '';
  private readonly turns = new Turns();

  constructor(
    private readonly folder: string,
    private readonly options: { readonly isSynced: boolean; readonly listeners: readonly PassthroughListener[] },
  ) {}

  /** Finds the last segment and cuts off a torn last line. */
  async start(): Promise<void> {
    const last = (await this.segments()).at(-1);
    if (last !== undefined) await this.openSegment(last);
  }

  /** Appends and syncs; then notifies the listeners. */
  append(batches: readonly PassthroughBatch[]): Promise<void> {
    return this.turns.run(() => this.write(batches));
  }

  /** Starts another segment if the current one has data and is old enough, so that it can be removed later. */
  turn(begunUntilUnixMs: number): Promise<void> {
    return this.turns.run(async () => {
      if (this.file === undefined || this.file.lengthBytes === 0) return;
      const { birthtimeMs } = await stat(this.file.path);
      if (birthtimeMs <= begunUntilUnixMs) await this.nextSegment();
    });
  }

  /** Segments that nothing more is written to, oldest first. */
  async ended(): Promise<readonly EndedSegment[]> {
    const ended: EndedSegment[] = [];
    // The last one determines the next name, and the position of destinations.
    for (const segment of (await this.segments()).slice(0, -1)) {
      const { size, mtimeMs } = await stat(join(this.folder, segment));
      ended.push({ segment, sizeBytes: size, writtenUnixMs: mtimeMs });
    }
    return ended;
  }

  /** Removes a segment that is no longer written. Readers continue with the next. */
  async remove({ segment }: EndedSegment): Promise<void> {
    await rm(join(this.folder, segment), { force: true });
  }

  private async write(batches: readonly PassthroughBatch[]): Promise<void> {
    if (this.file === undefined && this.segment !== '') await this.openSegment(this.segment);
    if (this.file === undefined || this.file.lengthBytes > SEGMENT_BYTES) await this.nextSegment();
    const bytes = Buffer.from(batches.map((batch) => `${batch.body}\n`).join(''));
    try {
      await this.file?.append([bytes]);
    } catch (error) {
      // Opened again by the next append: the file, or its folder, may have been removed.
      await this.close().catch(() => undefined);
      throw error;
    }
    for (const listener of this.options.listeners) listener.onPassthrough(batches);
  }

  async *read(from?: PassthroughPosition): AsyncIterable<PassthroughEntry> {
    for (const segment of await this.segments()) {
      if (from !== undefined && segment < from.segment) continue;
      const fromOffset = segment === from?.segment ? from.offset : 0;
      const toOffset = segment === this.segment ? this.file?.lengthBytes : undefined;
      for await (const { lines } of readLines(join(this.folder, segment), { fromOffset, toOffset })) {
        for (const line of lines) {
          const body = textOf(line);
          yield { signal: signalOf(body), body, next: { segment, offset: line.endOffset } };
        }
      }
    }
  }

  async end(): Promise<PassthroughPosition | undefined> {
    return this.file === undefined ? undefined : { segment: this.segment, offset: this.file.lengthBytes };
  }

  async close(): Promise<void> {
    const { file } = this;
    this.file = undefined;
    await file?.close();
  }

  private async segments(): Promise<string[]> {
    try {
      return (await readdir(this.folder)).filter((name) => SEGMENT.test(name)).sort();
    } catch (error) {
      if (errorCode(error) === 'ENOENT') return [];
      throw error;
    }
  }

  private async nextSegment(): Promise<void> {
    const number = Number.parseInt(this.segment || '0', 10) + 1;
    await this.close();
    await this.openSegment(`${String(number).padStart(8, '0')}.otlp.jsonl`);
  }

  private async openSegment(name: string): Promise<void> {
    await makeFolder(this.folder, false);
    const { isSynced } = this.options;
    const file = await AppendFile.open(join(this.folder, name), {
      isSynced,
      syncFolder: async (folder) => {
        if (!isSynced) return;
        await syncFolder(dirname(folder));
        await syncFolder(folder);
      },
    });
    await closeOnFailure(file, () => file.settle());
    this.file = file;
    this.segment = name;
  }
}

function signalOf(body: string): Signal {
  return body.startsWith('{"resourceSpans"') ? 'traces' : 'logs';
}

/** A position in telemetry of other services: a segment file's name and a byte offset in it. */
export interface PassthroughPosition {
  readonly segment: string;
  readonly offset: number;
}

/** One OTLP JSON message of another service, and the position after it. */
export interface PassthroughEntry {
  readonly signal: Signal;
  readonly body: string;
  readonly next: PassthroughPosition;
}

/** Reads the telemetry of other services, stored as OTLP JSON lines in segment files. */
export interface PassthroughLogReader {
  /** Yields everything after `from` (by default everything that still exists), in order, up to the current end. */
  read(from?: PassthroughPosition): AsyncIterable<PassthroughEntry>;
  /** Returns the position after the last durable entry; `undefined` when nothing was ever written. */
  end(): Promise<PassthroughPosition | undefined>;
}

/** Is notified of durable telemetry of other services. Called synchronously; must not throw and must not wait. */
export interface PassthroughListener {
  onPassthrough(batches: readonly PassthroughBatch[]): void;
}
