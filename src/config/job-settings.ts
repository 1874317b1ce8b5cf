import { z } from 'zod';
import type { JobDefinition } from '../job/job-definition.js';
import { problemOfWords, splitCommandLine } from '../job/split-command-line.js';
import { parseDurationMs } from './duration.js';
import { declaredShape, nameSchema } from './place-settings.js';
import { parsePath, type SettingContext } from './setting.js';

/** Most commands that one job may have. */
const MAX_COMMANDS = 100;

/** Reads one entry of `jobs:`, all but its name. */
export function jobSchema({ baseDir, homeDir }: SettingContext) {
  return z
    .strictObject(
      {
        ...declaredShape,
        project: nameSchema.nullish(),
        environment: nameSchema.nullish(),
        command: commandsSchema.nullish(),
        'working-dir': z.string('is not a path').nullish(),
        env: z
          .record(
            z.string().regex(/^[^=\0]+$/, 'is not the name of a variable'),
            variableSchema,
            'is not a list of variables',
          )
          .nullish(),
        target: nameSchema.nullish(),
        threads: z.number('is not a number').int('is not a whole number').min(1, 'is less than 1').nullish(),
        timeout: z
          .union([z.string(), z.number()], 'is not a time such as 30m or 2h')
          .transform((value, context) => {
            const timeoutMs = parseDurationMs(String(value));
            return timeoutMs || reject(context, `${JSON.stringify(value)} is not a time such as 30m or 2h`);
          })
          .nullish(),
      },
      'is not a list of settings such as "command: dbt build"',
    )
    .transform(
      (value): Omit<JobDefinition, 'name'> => ({
        id: value.id ?? null,
        match: value.match,
        project: value.project ?? null,
        environment: value.environment ?? null,
        commands: value.command ?? [],
        workingDir: parsePath(value['working-dir'] ?? '', { baseDir, homeDir }) ?? baseDir,
        variables: value.env ?? {},
        targetName: value.target ?? null,
        threads: value.threads ?? null,
        timeoutMs: value.timeout ?? null,
      }),
    );
}

const variableSchema = z
  .union([z.string(), z.number(), z.boolean()], 'is not a text')
  .transform(String)
  .refine((text) => !text.includes('\0'), 'holds a zero byte');

/** One line, or a list of lines and of argument lists. By hand: of a union one could not say which of its lines is wrong. */
const commandsSchema = z.unknown().transform((value, context): readonly (readonly string[])[] => {
  if (typeof value === 'string') return [readCommand(value, context, [])];
  if (!Array.isArray(value) || value.length === 0) {
    return reject(context, 'is not a line such as "dbt build", or a list of them');
  }
  if (value.length > MAX_COMMANDS) return reject(context, `has more than ${MAX_COMMANDS} commands`);
  return value.map((one: unknown, index) => readCommand(one, context, [index]));
});

function readCommand(value: unknown, context: z.core.$RefinementCtx, path: number[]): readonly string[] {
  if (typeof value === 'string') {
    const split = splitCommandLine(value);
    return 'words' in split ? split.words : reject(context, `${JSON.stringify(value)} ${split.problem}`, path);
  }
  const words = wordsSchema.safeParse(value).data;
  if (words === undefined) return reject(context, 'is not a line such as "dbt build" or a list of arguments', path);
  const problem = problemOfWords(words);
  return problem === undefined ? words : reject(context, problem, path);
}

const wordsSchema = z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String));

function reject(context: z.core.$RefinementCtx, message: string, path: number[] = []): never {
  context.issues.push({ code: 'custom', message, path, input: context.value });
  return z.NEVER;
}
