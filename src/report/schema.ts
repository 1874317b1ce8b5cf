import { z } from 'zod';
import { commandSchema } from '../api/own/measures-answer.js';

/** The document of `--format json`. */
export const reportDocumentSchema = z.object({
  commands: z.array(
    commandSchema.extend({
      comparison: z
        .object({
          earlier_count: z.number().int(),
          median_ms: z.number(),
          p95_ms: z.number(),
          ratio: z.number().nullable(),
          is_slow: z.boolean(),
        })
        .nullable()
        .meta({
          description: 'beside at most 50 earlier successes of its project, job and command; null where there are none',
        }),
    }),
  ),
});

/** Its JSON Schema, of draft 2020-12. Later versions may add fields. */
export function reportSchema(): object {
  return { title: 'run-bridge report', ...z.toJSONSchema(reportDocumentSchema, { io: 'input' }) };
}
