import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { endingSchema } from '../run/ending-schema.js';
import { stepStartOf, stepStartSchema } from '../run/execution-api.js';
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

/** An entry as it is written. */
export type SpoolEntryDocument = z.input<typeof entrySchema>;

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
