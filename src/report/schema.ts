import { z } from 'zod';
import { commandSchema, comparisonSchema } from '../api/native/measures-answer.js';

/** The document of `--format json`. */
export const reportDocumentSchema = z.object({
  commands: z.array(
    commandSchema.extend({
      comparison: comparisonSchema.nullable().meta({
        description: 'beside at most 50 earlier successes of its project, job and command; null where there are none',
      }),
    }),
  ),
});

/** Its JSON Schema, of draft 2020-12. Later versions may add fields. */
export function reportSchema(): object {
  return { title: 'run-bridge report', ...z.toJSONSchema(reportDocumentSchema, { io: 'input' }) };
}
