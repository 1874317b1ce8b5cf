import { readFile } from 'node:fs/promises';
import { z } from 'zod';
import type { TailPosition } from '../files/feature.js';
import { parseTraceId, type TraceId } from '../record/telemetry-record.js';
import { endingSchema } from '../run/ending-schema.js';
import { stepStartOf, stepStartSchema } from '../run/execution-api.js';
import type { CommandEnding, StepStart } from '../storage/steps.js';

/** A command whose records are not, or not all, where they belong. */
export interface CommandEntry {
  readonly start: StepStart;
  /** URL of the bridge that the user named for it (`--to`); `null` where any will do. */
  readonly to: string | null;
  /** The engine's JSONL; `null` where there was none to follow. */
  readonly file: LeftFile | null;
  /** The command's OTEL_RESOURCE_ATTRIBUTES. */
  readonly resourceAttributes: string;
  /** `null` where nobody saw the end. */
  readonly end: { readonly ending: CommandEnding; readonly endedUnixMs: number } | null;
}

/** The engine's JSONL of a command that was left behind. */
export interface LeftFile {
  readonly path: string;
  /** From where on it is of this command; `undefined` for its beginning. */
  readonly from: TailPosition | undefined;
  /** The command's traces, as far as they were known: others may have written to the file, too. */
  readonly traceIds: readonly TraceId[];
  /** Traces that came to the file while the command was at work, of which it was not known yet whose they are. */
  readonly seenTraceIds: readonly TraceId[];
}

const fileSchema = z.object({
  path: z.string(),
  from_offset: z.number().int().nonnegative(),
  // Earlier versions knew no more than the offset.
  from: z.object({ inode: z.string(), head_bytes: z.number().int().nonnegative(), head_hash: z.string() }).optional(),
  trace_ids: z.array(z.string()).default([]),
  seen_trace_ids: z.array(z.string()).default([]),
});

/** What `writeCommandEntry` writes. */
export type EntryDocument = z.input<typeof entrySchema>;

const entrySchema = z.object({
  step_id: z.string(),
  step: stepStartSchema,
  to: z.string().nullable(),
  file: fileSchema.nullable(),
  resource_attributes: z.string(),
  end: z.object({ ending: endingSchema, ended_unix_ms: z.number() }).nullable(),
});

/** Reads the entry of a command's folder, its `ENTRY_FILE`; `undefined` where there is none, or it is damaged. */
export async function readCommandEntry(path: string): Promise<CommandEntry | undefined> {
  try {
    const read = entrySchema.parse(JSON.parse(await readFile(path, 'utf8')));
    const { file, end } = read;
    return {
      start: stepStartOf(read.step_id, read.step),
      to: read.to,
      file: file === null ? null : await leftFileOf(file),
      resourceAttributes: read.resource_attributes,
      end: end === null ? null : { ending: end.ending, endedUnixMs: end.ended_unix_ms },
    };
  } catch {
    return undefined;
  }
}

async function leftFileOf({
  path,
  from_offset: offset,
  from,
  trace_ids,
  seen_trace_ids,
}: z.output<typeof fileSchema>): Promise<LeftFile> {
  const parsed = (texts: readonly string[]) => texts.flatMap((text) => parseTraceId(text) ?? []);
  const traces = { traceIds: parsed(trace_ids), seenTraceIds: parsed(seen_trace_ids) };
  if (from === undefined) {
    const { startPosition } = await import('../files/feature.js');
    return { path, from: await startPosition(path, offset), ...traces };
  }
  const { inode, head_bytes: headBytes, head_hash: headHash } = from;
  return { path, from: { inode, offset, line: 1, headBytes, headHash }, ...traces };
}
