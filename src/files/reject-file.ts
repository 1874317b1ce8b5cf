import { appendFile, mkdir, rename, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Clock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { Reject } from './record-source.js';

/** Name of the file in the data folder. */
export const REJECTS_FILE = 'rejects.jsonl';

/** A file longer than this is renamed to `rejects.old.jsonl`, replacing an earlier one, and a new one is started: 32 MiB. */
const MAX_BYTES = 32 * 1024 * 1024;

/**
 * Stores what could not be read, one line of JSON each, with the file, location, reason and text. Several programs may write to the same file. If it cannot be written, that is reported once, and
 * reading continues.
 */
export class RejectFile {
  private isFailing = false;

  constructor(
    readonly path: string,
    private readonly clock: Clock,
    private readonly onTrouble: (message: string) => void,
    private readonly maxBytes = MAX_BYTES,
  ) {}

  /** Appends rejects. @param file the file that they are from, as the user named it */
  async add(file: string, rejects: readonly Reject[]): Promise<void> {
    if (rejects.length === 0) return;
    const time = new Date(this.clock.nowUnixMs()).toISOString();
    const lines = rejects.map(({ place, offset, reason, count, text }) => {
      const row = { time, file, place, byte_offset: offset ?? null, reason, count, text: text ?? null };
      return `${JSON.stringify(row)}\n`;
    });
    try {
      await mkdir(dirname(this.path), { recursive: true });
      await this.makeRoom();
      await appendFile(this.path, lines.join(''));
      this.isFailing = false;
    } catch (error) {
      const reason = reasonOf(error);
      if (!this.isFailing) this.onTrouble(`what could not be read is not kept in ${this.path}: ${reason}`);
      this.isFailing = true;
    }
  }

  private async makeRoom(): Promise<void> {
    const found = await stat(this.path).catch(() => undefined);
    if (found !== undefined && found.size > this.maxBytes) {
      await rename(this.path, this.path.replace(/(\.jsonl)?$/, '.old.jsonl'));
    }
  }
}
