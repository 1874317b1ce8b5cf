import { z } from 'zod';
import type { QueryFiles } from './query-files.js';
import type { QueryLimits } from './query-limits.js';

/** What the process of a query is told, as JSON on its standard input. */
export interface QueryTask {
  readonly sql: string;
  readonly files: QueryFiles;
  readonly limits: QueryLimits;
}

/** What it answers, a line of JSON each: columns, rows in parts, the end; or an error instead of what is left. */
export const queryMessageSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('columns'), columns: z.array(z.object({ name: z.string(), type: z.string() })) }),
  z.object({ type: z.literal('rows'), rows: z.array(z.array(z.json())) }),
  z.object({ type: z.literal('end'), isTruncated: z.boolean() }),
  z.object({
    type: z.literal('error'),
    code: z.enum(['invalid', 'refused', 'memory', 'tooLarge', 'notInstalled', 'filesChanged', 'failed']),
    message: z.string(),
  }),
]);

export type QueryMessage = z.output<typeof queryMessageSchema>;
