import { type FileHandle, open } from 'node:fs/promises';
import type { OtlpCodec } from '../otlp/otlp-codec.js';
import type { Signal } from '../record/record-batch.js';
import type { TraceId } from '../record/telemetry-record.js';

/** An OTLP request that was answered and whose records are not appended yet. */
export interface BufferedRequest {
  readonly signal: Signal;
  /** Traces of the engine's records in it. */
  readonly traceIds: readonly TraceId[];
  /** Whether it holds telemetry of another service, too; `undefined` where nobody has looked. */
  readonly hasPassthrough: boolean | undefined;
  /** When it came, on a monotonic clock in milliseconds. */
  readonly sinceMs: number;
}

interface Entry {
  readonly request: BufferedRequest;
  /** In protobuf; `undefined` once it stands in the file. */
  bytes: Uint8Array | undefined;
  /** In the file. */
  offset: number;
  byteCount: number;
}

/** Where and how much is buffered. */
export interface BufferedRequestsOptions {
  /** File for what goes beyond memory: OTLP JSON lines, so that it can be imported as it is. Created when needed. */
  readonly path: string;
  /** What bodies may take in memory, in bytes; beyond it the new ones go to the file. */
  readonly maxMemoryBytes: number;
  /** How requests are read and written; asked for when one goes to the file. */
  readonly codecs: () => Promise<{ readonly protobuf: OtlpCodec; readonly json: OtlpCodec }>;
}

const LINE_FEED = '\n';

/** OTLP requests in the order in which they came, in memory up to a limit and beyond it in a file. */
export class BufferedRequests {
  private entries: Entry[] = [];
  private memoryBytes = 0;
  private file: FileHandle | undefined;
  private fileBytes = 0;
  /** Writes to the file stand one after the other. */
  private writing: Promise<unknown> = Promise.resolve();

  constructor(private readonly options: BufferedRequestsOptions) {}

  get count(): number {
    return this.entries.length;
  }

  /** @param bytes the request in protobuf; not to be changed any more. @throws what the file system throws when the file takes no more. */
  async add(request: BufferedRequest, bytes: Uint8Array): Promise<void> {
    const entry: Entry = { request, bytes, offset: 0, byteCount: bytes.length };
    if (this.memoryBytes + bytes.length > this.options.maxMemoryBytes) await this.toFile(entry);
    else this.memoryBytes += bytes.length;
    this.entries.push(entry);
  }

  /** Hands over, one after the other and in protobuf, those that `isDue` picks; one is let go when `deliver` has resolved. @throws what `deliver` throws. */
  async drain(
    isDue: (request: BufferedRequest) => boolean,
    deliver: (request: BufferedRequest, bytes: Uint8Array) => Promise<void>,
  ): Promise<void> {
    for (const entry of this.entries.filter(({ request }) => isDue(request))) {
      await deliver(entry.request, await this.read(entry));
      this.entries.splice(this.entries.indexOf(entry), 1);
      if (entry.bytes !== undefined) this.memoryBytes -= entry.bytes.length;
    }
  }

  /** Writes all that is left in memory to the file, for the process that continues. @throws what the file system throws. */
  async saveAll(): Promise<void> {
    for (const entry of this.entries) {
      if (entry.bytes === undefined) continue;
      this.memoryBytes -= entry.bytes.length;
      await this.toFile(entry);
    }
  }

  async close(): Promise<void> {
    await this.writing.catch(() => undefined);
    await this.file?.close();
    this.file = undefined;
  }

  private async toFile(entry: Entry): Promise<void> {
    const { bytes } = entry;
    if (bytes === undefined) return;
    const written = this.writing.then(async () => {
      const { protobuf, json } = await this.options.codecs();
      const request = protobuf.decode(entry.request.signal, bytes);
      const line = Buffer.concat([json.encode(request), Buffer.from(LINE_FEED)]);
      // What a failed write left is written over.
      this.file ??= await open(this.options.path, 'w+', 0o600);
      await this.file.writev([line], this.fileBytes);
      entry.offset = this.fileBytes;
      entry.byteCount = line.length - LINE_FEED.length;
      entry.bytes = undefined;
      this.fileBytes += line.length;
    });
    this.writing = written.catch(() => undefined);
    await written;
  }

  private async read({ request, bytes, offset, byteCount }: Entry): Promise<Uint8Array> {
    if (bytes !== undefined) return bytes;
    const { protobuf, json } = await this.options.codecs();
    const buffer = Buffer.alloc(byteCount);
    await this.file?.read(buffer, 0, byteCount, offset);
    return protobuf.encode(json.decode(request.signal, buffer));
  }
}
