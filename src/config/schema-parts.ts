import { z } from 'zod';
import { quoted } from './mask.js';
import { parseSwitch } from './setting.js';

// Parts of the schemas of the configuration file.

/** Reports a problem of a value. @param path of the part that has it */
export function reject(context: z.core.$RefinementCtx, message: string, path: number[] = []): never {
  context.issues.push({ code: 'custom', message, path, input: context.value });
  return z.NEVER;
}

/** Reads a switch from YAML's booleans and words. */
export const switchSchema = z
  .union([z.string(), z.boolean(), z.number()], 'is not on or off')
  .transform((value, context) => parseSwitch(String(value)) ?? reject(context, `${quoted(value)} is not on or off`));

/** Reads one of a few words, whatever their case. */
export function choiceSchema<const T extends string>(choices: readonly T[]) {
  const problem = `is not one of ${choices.join(', ')}`;
  return z.union([z.string(), z.boolean()], problem).transform((value, context) => {
    // YAML reads `off` as false.
    const text = value === false ? 'off' : String(value).trim().toLowerCase();
    return choices.find((one) => one.toLowerCase() === text) ?? reject(context, `${quoted(value)} ${problem}`);
  });
}
