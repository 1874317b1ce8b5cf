import { renameSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { endingDocument } from '../run/ending-document.js';
import { endingSchema } from '../run/ending-schema.js';
import { stepStartDocument, stepStartOf, stepStartSchema } from '../run/execution-api.js';
import type { CommandEnding } from '../storage/command-ending.js';
import type { StepStart } from '../storage/step-start.js';
import { ENTRY_FILE } from './spool-folder.js';

/** A command whose records are not, or not all, where they belong. */
export interface SpoolEntry {
  readonly start: StepStart;
  /** URL of the bridge that the user named for it (`--to`); `null` where any will do. */
  readonly to: string | null;
  /** The engine's JSONL, and from which byte on it is of this command; `null` where there was none to follow. */
  readonly file: { readonly path: string; readonly fromOffset: number } | null;
  /** The command's OTEL_RESOURCE_ATTRIBUTES. */
  readonly resourceAttributes: string;
  /** `null` where nobody saw the end. */
  readonly end: { readonly ending: CommandEnding; readonly endedUnixMs: number } | null;
}

const entrySchema = z.object({
  step_id: z.string(),
  step: stepStartSchema,
  to: z.string().nullable(),
  file: z.object({ path: z.string(), from_offset: z.number().int().nonnegative() }).nullable(),
  resource_attributes: z.string(),
  end: z.object({ ending: endingSchema, ended_unix_ms: z.number() }).nullable(),
});

/** Reads the entry of a command's folder; `undefined` where there is none, or it is damaged. */
export async function readSpoolEntry(folder: string): Promise<SpoolEntry | undefined> {
  try {
    const read = entrySchema.parse(JSON.parse(await readFile(join(folder, ENTRY_FILE), 'utf8')));
    const { file, end } = read;
    return {
      start: stepStartOf(read.step_id, read.step),
      to: read.to,
      file: file === null ? null : { path: file.path, fromOffset: file.from_offset },
      resourceAttributes: read.resource_attributes,
      end: end === null ? null : { ending: end.ending, endedUnixMs: end.ended_unix_ms },
    };
  } catch {
    return undefined;
  }
}

/** Writes an entry into its command's folder, in place of an earlier one as a whole. @throws what the file system throws. */
export function writeSpoolEntry(folder: string, entry: SpoolEntry): void {
  const { start, to, file, resourceAttributes, end } = entry;
  const document: z.input<typeof entrySchema> = {
    step_id: start.stepId,
    step: stepStartDocument(start),
    to,
    file: file === null ? null : { path: file.path, from_offset: file.fromOffset },
    resource_attributes: resourceAttributes,
    end: end === null ? null : { ending: endingDocument(end.ending), ended_unix_ms: end.endedUnixMs },
  };
  const path = join(folder, ENTRY_FILE);
  writeFileSync(`${path}.partial`, `${JSON.stringify(document)}\n`, { mode: 0o600 });
  renameSync(`${path}.partial`, path);
}
