import { z } from 'zod';
import type { CommandEnding } from '../storage/steps.js';

const signalSchema = z.string().regex(/^SIG[A-Z0-9]{2,12}$/, 'must be like SIGKILL');

/** How a command ended, as `run.json` and the API spell it. */
export const endingSchema = z
  .discriminatedUnion('kind', [
    z.object({
      kind: z.literal('exited'),
      exit_code: z
        .number()
        .int()
        .min(-(2 ** 31))
        .max(2 ** 32 - 1),
      stopped_by: signalSchema.optional(),
    }),
    z.object({ kind: z.literal('killed'), signal: signalSchema }),
    z.object({ kind: z.literal('not_started'), reason: z.string().max(1_000) }),
    z.object({ kind: z.literal('within') }),
    z.object({ kind: z.literal('unknown') }),
  ])
  .transform((ending): CommandEnding => {
    switch (ending.kind) {
      case 'exited':
        return {
          kind: 'exited',
          exitCode: ending.exit_code,
          ...(ending.stopped_by === undefined ? {} : { stoppedBy: ending.stopped_by }),
        };
      case 'not_started':
        return { kind: 'notStarted', reason: ending.reason };
      default:
        return ending;
    }
  });

/** What `endingSchema` reads. */
export type EndingDocument = z.input<typeof endingSchema>;
