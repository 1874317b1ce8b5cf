import { fstatSync, type Stats } from 'node:fs';
import { mkdir, open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Environment } from '../config/environment.js';
import { maskSecrets } from '../redaction/mask-secrets.js';
import { COMMAND_OUTPUTS } from '../storage/artifacts.js';
import type { FoundArtifact } from './found-artifacts.js';

/** What is kept of each file at most, in bytes: 4 MiB. */
const MAX_BYTES = 4 * 1024 * 1024;
/** The part of it that is of the beginning, where more was written; the rest is of the end. */
const HEAD_SHARE = 0.25;
const LINE_FEED = 0x0a;
/** In a command's folder. */
const OUTPUT_FOLDER = 'output';

/** A standard stream that is a file. */
interface Stream {
  readonly descriptor: number;
  readonly stats: Stats;
}

/** How output is kept. */
export interface OutputOptions {
  /** The most of each file, in bytes. */
  readonly maxBytes: number;
  /** The command's: values of variables that are named like secrets are left out. */
  readonly environment: Environment;
}

/**
 * What a command writes to standard output and error, as far as these are files (a CI step or cron with `> build.log 2>&1`).
 * The command has the very files, and what they have gained is read when it has ended: nothing stands between. Terminals and pipes
 * cannot be read without that, so of them nothing is kept. Other programs that write to the same file meanwhile are read, too.
 * On Linux alone: elsewhere nothing tells where a file lies.
 */
export class CommandOutput {
  private readonly streams: readonly Stream[];
  /** Whether both go to one file. */
  private readonly isOne: boolean;
  private endBytes: readonly number[] = [];

  /** To be made right before the command starts. */
  constructor() {
    const files = [1, 2].flatMap((descriptor) => {
      const stats = statsOf(descriptor);
      return stats === undefined ? [] : [{ descriptor, stats }];
    });
    const [first, second] = files;
    this.streams = first !== undefined && second !== undefined && isSame(first.stats, second.stats) ? [first] : files;
    this.isOne = this.streams.length < files.length;
  }

  /** The command has ended: what is written from now on is not its. */
  end(): void {
    this.endBytes = this.streams.map(({ descriptor }) => statsOf(descriptor)?.size ?? 0);
  }

  /** Copies what was written into the command's folder. @throws errors of the file system */
  async save(folder: string, { maxBytes, environment }: OutputOptions): Promise<readonly FoundArtifact[]> {
    const saved: FoundArtifact[] = [];
    // Bytes that are no text stay as they are.
    const inBytes = Object.fromEntries(
      Object.entries(environment).map(([name, value = '']) => [name, Buffer.from(value).toString('latin1')]),
    );
    for (const [at, { descriptor, stats }] of this.streams.entries()) {
      const end = this.endBytes[at] ?? 0;
      // What was truncated since, as by a rotation of logs, is of the command from its beginning.
      const start = stats.size > end ? 0 : stats.size;
      const bytes = await read(descriptor, start, end, Math.min(maxBytes, MAX_BYTES));
      if (bytes.byteLength === 0) continue;
      const path = this.isOne
        ? COMMAND_OUTPUTS.both
        : descriptor === 1
          ? COMMAND_OUTPUTS.stdout
          : COMMAND_OUTPUTS.stderr;
      const file = join(folder, OUTPUT_FOLDER, path);
      await mkdir(join(folder, OUTPUT_FOLDER), { recursive: true, mode: 0o700 });
      const masked = Buffer.from(maskSecrets(bytes.toString('latin1'), inBytes), 'latin1');
      await writeFile(file, masked, { mode: 0o600 });
      saved.push({ path, file, sizeBytes: masked.byteLength });
    }
    return saved;
  }
}

function statsOf(descriptor: number): Stats | undefined {
  try {
    const stats = fstatSync(descriptor);
    return stats.isFile() ? stats : undefined;
  } catch {
    // It is closed.
    return undefined;
  }
}

function isSame(a: Stats, b: Stats): boolean {
  return a.dev === b.dev && a.ino === b.ino;
}

/** Reads a part of the file that a descriptor of this process writes to; of a long one its beginning and its end, in whole lines. */
async function read(descriptor: number, start: number, end: number, maxBytes: number): Promise<Buffer> {
  // Also where it was renamed or removed meanwhile. One that may be written alone is nobody's trouble.
  const file = end <= start ? undefined : await open(`/proc/self/fd/${descriptor}`, 'r').catch(() => undefined);
  if (file === undefined) return Buffer.alloc(0);
  try {
    const part = async (from: number, to: number) => {
      const buffer = Buffer.alloc(to - from);
      let length = 0;
      while (length < buffer.byteLength) {
        const { bytesRead } = await file.read(buffer, length, buffer.byteLength - length, from + length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return buffer.subarray(0, length);
    };
    if (end - start <= maxBytes) return await part(start, end);
    const headBytes = Math.floor(maxBytes * HEAD_SHARE);
    const head = await part(start, start + headBytes);
    const tail = await part(end - (maxBytes - headBytes), end);
    const first = head.subarray(0, head.lastIndexOf(LINE_FEED) + 1 || head.byteLength);
    const last = tail.subarray(tail.indexOf(LINE_FEED) + 1);
    const leftOut = (end - start - first.byteLength - last.byteLength).toLocaleString('en');
    return Buffer.concat([first, Buffer.from(`\n[run-bridge: ${leftOut} bytes are left out here]\n\n`), last]);
  } finally {
    await file.close();
  }
}
