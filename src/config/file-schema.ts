import { z } from 'zod';
import type { JobDefinition } from '../job/job-definition.js';
import type { DeclaredEnvironment, DeclaredPlace } from '../run/place-finder.js';
import { type DestinationSettings, destinationSchema, switchSchema } from './destination-settings.js';
import { jobSchema } from './job-settings.js';
import { quoted } from './mask.js';
import { environmentSchema, nameSchema, projectSchema } from './place-settings.js';
import type { SettingContext } from './setting.js';
import { SETTING_KEYS, SETTINGS, type SettingKey, type SettingValues } from './settings.js';

/** What a configuration file sets. */
export interface FileValues {
  readonly values: { readonly [K in SettingKey]?: SettingValues[K] };
  readonly mapping: Readonly<Record<string, boolean>>;
  readonly destinations: readonly DestinationSettings[];
  readonly jobs: readonly JobDefinition[];
  readonly projects: readonly DeclaredPlace[];
  readonly environments: readonly DeclaredEnvironment[];
}

/** Names of destinations become keys of state and part of messages, so they are plain. */
const DESTINATION_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/i;

/** Schema of `run-bridge.yaml`; strict, so that a misspelt key is told. @param mappingSwitches names of the mapping switches. */
export function fileSchema(context: SettingContext, mappingSwitches: readonly string[]): z.ZodType<FileValues> {
  const mapping = mappingSchema(mappingSwitches);
  const settings = Object.fromEntries(SETTING_KEYS.map((key) => [key, settingSchema(key, context).nullish()]));
  const destinations = z.record(
    z.string().regex(DESTINATION_NAME, 'is not a name of letters, digits, - and _'),
    destinationSchema(context, mapping),
    'is not a list of named destinations',
  );
  const places = {
    jobs: namedSchema(jobSchema(context), 'is not a list of named jobs').nullish(),
    projects: namedSchema(projectSchema, 'is not a list of named projects').nullish(),
    environments: namedSchema(environmentSchema, 'is not a list of named environments').nullish(),
  };
  return z
    .strictObject(
      { ...settings, mapping: mapping.nullish(), destinations: destinations.nullish(), ...places },
      'the file does not hold settings such as "http: 127.0.0.1:4318"',
    )
    .transform(({ mapping: switches, destinations: named, jobs, projects, environments, ...values }) => {
      const set = Object.entries(values).filter(([, value]) => value != null);
      return {
        values: Object.fromEntries(set) as Partial<SettingValues>,
        mapping: switches ?? {},
        destinations: listOf(named),
        jobs: listOf(jobs),
        projects: listOf(projects),
        environments: listOf(environments),
      };
    });
}

/** Things by their names; one of which nothing but its name is said, is an empty entry. */
function namedSchema<Value>(one: z.ZodType<Value>, problem: string) {
  return z.record(
    nameSchema,
    z.preprocess((value) => value ?? {}, one),
    problem,
  );
}

function listOf<Value extends object>(named: Readonly<Record<string, Value>> | null | undefined) {
  return Object.entries(named ?? {}).map(([name, settings]) => ({ name, ...settings }));
}

/** Names that the file may hold at a path of it, to suggest one for a misspelt key. */
export function knownNames(path: readonly PropertyKey[], mappingSwitches: readonly string[]): readonly string[] {
  if (path.length === 0) {
    return [...SETTING_KEYS, 'mapping', 'destinations', 'jobs', 'projects', 'environments'];
  }
  if (path.at(-1) === 'mapping') return mappingSwitches;
  if (path.at(-2) === 'match') return RULE_KEYS;
  if (path[0] === 'projects' || path[0] === 'environments') return PLACE_KEYS;
  return path[0] === 'jobs' ? JOB_KEYS : DESTINATION_KEYS;
}

const RULE_KEYS: readonly string[] = ['command', 'target', 'resource'];
const PLACE_KEYS = Object.keys(environmentSchema.in.shape);
const JOB_KEYS = Object.keys(jobSchema({ baseDir: '/', homeDir: '/' }).in.shape);
const DESTINATION_KEYS = Object.keys(destinationSchema({ baseDir: '/', homeDir: '/' }, mappingSchema([])).in.shape);

function settingSchema<K extends SettingKey>(key: K, settingContext: SettingContext): z.ZodType<SettingValues[K]> {
  const setting = SETTINGS[key];
  return z.union([z.string(), z.number(), z.boolean()], `is not ${setting.expected}`).transform((value, context) => {
    const parsed = setting.parse(String(value), settingContext);
    if (parsed !== undefined) return parsed;
    context.issues.push({
      code: 'custom',
      message: `${setting.isSecret ? 'the value' : quoted(value)} is not ${setting.expected}`,
      input: value,
    });
    return z.NEVER;
  });
}

function mappingSchema(names: readonly string[]): z.ZodType<Record<string, boolean>> {
  const shape = Object.fromEntries(names.map((name) => [name, switchSchema.optional()]));
  return z
    .strictObject(shape, 'is not a list of switches')
    .transform(
      (value) =>
        Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as Record<string, boolean>,
    );
}
