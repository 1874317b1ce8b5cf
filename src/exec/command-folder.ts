import { mkdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { createFolder } from '../core/folders.js';
import { endingDocument, stepStartDocument } from '../run/step-documents.js';
import type { CommandEntry, EntryDocument, LeftFile } from './command-entry.js';

/** Name of the folder of spooled commands in the data folder; each has a folder of its own there. */
export const SPOOL_FOLDER = 'spool';

/** The engine's JSONL in a command's folder. */
export const ENGINE_FILE = 'otel.jsonl';
/** What OTLP brought and was not appended yet, as OTLP JSON lines, in a command's folder. */
export const SPOOLED_OTLP_FILE = 'otel.otlp.jsonl';
/** What is known of the command, in its folder. */
export const ENTRY_FILE = 'command.json';

/** Free room that a file system must have for the engine's JSONL to be led there, in bytes: 512 MiB. */
const MIN_FREE_BYTES = 512 * 1024 * 1024;

/**
 * Makes a folder that no other user can read, at the first of some paths that can be written and has room: the engine
 * complains on the user's terminal when its telemetry file cannot be written. `undefined` where there is none.
 */
export function makePrivateFolder(paths: readonly string[]): string | undefined {
  for (const path of paths) {
    try {
      createFolder(dirname(path), 0o700);
      const { bavail, bsize } = statfsSync(dirname(path));
      if (bavail * bsize < MIN_FREE_BYTES) continue;
      mkdirSync(path, 0o700);
      return path;
    } catch {
      // Not here, then.
    }
  }
  return undefined;
}

/** Removes such a folder; one that cannot be removed is left. */
export function removePrivateFolder(folder: string): void {
  try {
    rmSync(folder, { recursive: true, force: true });
  } catch {
    // Of a command still at work in the background, say.
  }
}

/** Writes an entry into its command's folder, in place of an earlier one as a whole. @throws what the file system throws. */
export function writeCommandEntry(folder: string, entry: CommandEntry): void {
  const { start, to, file, resourceAttributes, end } = entry;
  const document: EntryDocument = {
    step_id: start.stepId,
    step: stepStartDocument(start),
    to,
    file: file === null ? null : fileDocument(file),
    resource_attributes: resourceAttributes,
    end: end === null ? null : { ending: endingDocument(end.ending), ended_unix_ms: end.endedUnixMs },
  };
  const path = join(folder, ENTRY_FILE);
  writeFileSync(`${path}.partial`, `${JSON.stringify(document)}\n`, { mode: 0o600 });
  renameSync(`${path}.partial`, path);
}

function fileDocument({ path, from, traceIds, seenTraceIds }: LeftFile): NonNullable<EntryDocument['file']> {
  const traces = { trace_ids: [...traceIds], seen_trace_ids: [...seenTraceIds] };
  if (from === undefined) return { path, from_offset: 0, ...traces };
  const { inode, offset, headBytes, headHash } = from;
  return { path, from_offset: offset, from: { inode, head_bytes: headBytes, head_hash: headHash }, ...traces };
}
