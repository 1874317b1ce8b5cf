import { z } from 'zod';
import type { MatchRule } from '../run/place-finder.js';

/** Most rules of one job, project or environment. */
const MAX_RULES = 100;

/** Name of a job, a project or an environment in the configuration file. */
export const nameSchema = z
  .string('is not a name')
  .trim()
  .min(1, 'is an empty name')
  .max(200, 'is a name of more than 200 characters');

/** The number of one, where the file says it. */
const idSchema = z
  .number('is not a number')
  .int('is not a whole number')
  .min(1, 'is less than 1')
  .max(2 ** 31 - 1, 'is more than 2147483647');

const patternSchema = z.union([z.string(), z.number(), z.boolean()], 'is not a text').transform(String);

const ruleSchema = z
  .strictObject(
    {
      command: patternSchema.optional(),
      target: patternSchema.optional(),
      resource: z.record(z.string(), patternSchema, 'is not a list of resource attributes').optional(),
    },
    'is not a rule such as "command: dbt build*"',
  )
  .refine((rule) => Object.keys(rule).length > 0, 'matches nothing: give command, target or resource');

/** What every job, project and environment may say of itself: its number, and what belongs to it. */
export const declaredShape = {
  id: idSchema.nullish(),
  match: z
    .preprocess(
      (value) => (Array.isArray(value) || value == null ? value : [value]),
      z.array(ruleSchema, 'is not a list of rules').max(MAX_RULES, `has more than ${MAX_RULES} rules`).nullish(),
    )
    .transform((rules): readonly MatchRule[] => rules ?? []),
} as const;

const NO_LIST = 'is not a list of settings such as "id: 7"';

/** One entry of `projects:`, all but its name. */
export const projectSchema = z
  .strictObject(declaredShape, NO_LIST)
  .transform(({ id, match }) => ({ id: id ?? null, match }));

/** One entry of `environments:`, all but its name. */
export const environmentSchema = z
  .strictObject({ ...declaredShape, project: nameSchema.nullish() }, NO_LIST)
  .transform(({ id, match, project }) => ({ id: id ?? null, match, project: project ?? null }));
