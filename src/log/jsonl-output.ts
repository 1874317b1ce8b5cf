import { once } from 'node:events';
import { open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { errorCode } from '../core/errors.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { formatRecordLine } from '../record/record-line.js';
import type { TraceId } from '../record/telemetry-record.js';
import type { Appended, AppendListener } from './appended.js';
import type { RecordLogReader } from './record-log.js';

/** A part of a record log that is still to be streamed. */
interface PendingRange {
  readonly fromOffset: number;
  readonly toOffset: number;
}

/**
 * Streams every durable record as a JSON line to one stream. It reads from the record logs, so a slow reader
 * costs no memory: only one pending range per trace is stored. Records that are pending when the process ends are not streamed later.
 */
export class JsonlOutput implements Component, AppendListener {
  readonly name = 'jsonl output';
  private readonly waiting = new Map<TraceId, PendingRange>();
  private running: Promise<void> | undefined;
  private isEnded = false;

  constructor(
    private readonly stream: Writable,
    private readonly deps: { readonly reader: RecordLogReader; readonly logger: Logger },
  ) {}

  async start(): Promise<void> {
    const end = (reason: string) => {
      if (this.isEnded) return;
      this.isEnded = true;
      this.waiting.clear();
      this.deps.logger.warn(
        { reason },
        'the reader closed the JSONL stream; records are still written to the data folder',
      );
    };
    this.stream.on('error', (error) => end(error.message));
    this.stream.on('close', () => end('closed'));
  }

  onAppended({ traceId, offset, lengthBytes, isEmpty }: Appended): void {
    if (this.isEnded || isEmpty) return;
    const fromOffset = this.waiting.get(traceId)?.fromOffset ?? offset;
    this.waiting.set(traceId, { fromOffset, toOffset: lengthBytes });
    this.running ??= this.run();
  }

  /** Streams pending records; stops at the deadline. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    if (this.running !== undefined && !deadline.aborted) {
      await Promise.race([this.running, once(deadline, 'abort')]);
    }
    this.isEnded = true;
  }

  private async run(): Promise<void> {
    try {
      for (let next = this.takeNext(); next !== undefined; next = this.takeNext()) await this.write(...next);
    } catch (error) {
      this.deps.logger.error({ error: String(error) }, 'failed to read records back for the JSONL stream');
    }
    this.running = undefined;
  }

  private takeNext(): readonly [TraceId, PendingRange] | undefined {
    const [next] = this.waiting;
    if (next !== undefined) this.waiting.delete(next[0]);
    return next;
  }

  private async write(traceId: TraceId, range: PendingRange): Promise<void> {
    for await (const records of this.deps.reader.read(traceId, range)) {
      if (this.isEnded) return;
      const text = records.map(({ record }) => `${formatRecordLine(record)}\n`).join('');
      if (!this.stream.write(text)) await this.drained();
    }
  }

  private async drained(): Promise<void> {
    const done = new AbortController();
    const options = { signal: done.signal };
    // `close` comes after an error, too; whichever is first, the other listener goes.
    await Promise.race([once(this.stream, 'drain', options), once(this.stream, 'close', options)]).catch(() => {});
    done.abort();
  }
}

/** A file for streamed records cannot be opened; the message says how to fix it. */
export class OutputError extends Error {
  override readonly name = 'OutputError';
}

/** Opens a file for appending. @throws OutputError */
export async function openJsonlStream(path: string): Promise<Writable> {
  try {
    return (await open(path, 'a')).createWriteStream();
  } catch (cause) {
    const code = errorCode(cause) ?? String(cause);
    throw new OutputError(`${path} cannot be written (${code}); pass a file in a folder that is there with --jsonl`, {
      cause,
    });
  }
}
