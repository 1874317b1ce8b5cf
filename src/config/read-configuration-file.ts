import { dirname } from 'node:path';
import { isAlias, isCollection, isMap, isNode, isPair, isScalar, LineCounter, type Node, parseDocument } from 'yaml';
import { z } from 'zod';
import type { MatchRule } from '../run/scope-finder.js';
import type { Configuration } from './configuration.js';
import { ConfigurationError } from './configuration-error.js';
import { destinationSchema, mappingSchema } from './destination-settings.js';
import { EXPECTED_PROBLEM, parseDurationMs, parseExpectedMs } from './duration.js';
import type { Environment } from './environment.js';
import type { FoundFile } from './find-configuration-file.js';
import { type JobDefinition, MAX_COMMANDS, problemOfWords, splitCommandLine } from './jobs.js';
import { kafkaDestinationSchema, kafkaJournalSchema, kafkaSourceSchema } from './kafka-settings.js';
import { MAPPING_SWITCHES } from './mapping-options.js';
import { maskUrl, quoted } from './mask.js';
import { removedProblem } from './removed-settings.js';
import { engineCommandOf } from './run-commands.js';
import { reject } from './schema-parts.js';
import { parsePath, type SettingContext } from './setting.js';
import { SETTING_KEYS, SETTINGS, type SettingKey, type SettingValues } from './settings.js';
import { nearestName } from './suggestion.js';

/** A configuration file that was found and is YAML. */
export interface ConfigurationFile {
  readonly path: string;
  /** Its content, with `${env:NAME}` replaced; not checked any further. */
  readonly content: unknown;
  /** `path:line` of a key or value in it. */
  locate(keys: readonly PropertyKey[]): string;
}

/**
 * @param unread keys at the top that are left out, whatever they hold
 * @throws ConfigurationError when the text is not YAML, or names an environment variable that is not set.
 */
export function parseConfigurationFile(
  { path, text }: FoundFile,
  environment: Environment,
  unread: readonly string[] = [],
): ConfigurationFile {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineOf = (offset: number) => `${path}:${lines.linePos(offset).line}`;
  if (document.errors.length > 0) {
    throw new ConfigurationError(
      document.errors.map((error) => `${lineOf(error.pos[0])}: ${problemOf(error.message)}`),
    );
  }
  const problem = aliasProblem(document.contents);
  if (problem !== undefined) throw new ConfigurationError([`${lineOf(problem.offset)}: ${problem.message}`]);
  const unset: string[] = [];
  const whole: unknown = document.toJS({ maxAliasCount: -1 }) ?? {};
  const content = fillIn(without(whole, unread), environment, unset);
  if (unset.length > 0) {
    throw new ConfigurationError(
      unset.map((name) => `${path}: \${env:${name}} stands for an environment variable that is not set; set ${name}`),
    );
  }
  return {
    path,
    content,
    locate(keys) {
      let node: unknown = document.contents;
      let line = path;
      for (const key of keys) {
        if (isMap(node)) {
          const pair = node.items.find((item) => (isScalar(item.key) ? String(item.key.value) : '') === String(key));
          if (pair === undefined) return line;
          if (isNode(pair.key) && pair.key.range) line = lineOf(pair.key.range[0]);
          node = pair.value;
        } else return line;
      }
      return line;
    },
  };
}

function without(content: unknown, keys: readonly string[]): unknown {
  if (keys.length === 0 || typeof content !== 'object' || content === null || Array.isArray(content)) return content;
  return Object.fromEntries(Object.entries(content).filter(([key]) => !keys.includes(key)));
}

/** The parser takes itself for what has failed where brackets stand in brackets thousands of times. */
function problemOf(message: string): string {
  if (message === 'Maximum call stack size exceeded') return 'is nested too deeply';
  return message.startsWith('Source contains multiple documents') ? 'has a second document; take out the ---' : message;
}

/** Most values that a file may have by aliases, those that it has once for each time. */
const MAX_ALIASED_VALUES = 20_000;

/** What is wrong with a file's aliases, and where: one that refers to nothing, or to what it stands in, or too many of them. */
function aliasProblem(contents: Node | null): { readonly offset: number; readonly message: string } | undefined {
  /** The number of values of what an anchor names; `open` while its end has not come. */
  const anchors = new Map<string, number | 'open'>();
  let aliasedCount = 0;
  const problem = (node: Node, message: string) => ({ offset: node.range?.[0] ?? 0, message });
  return read(contents).problem;

  function read(node: unknown): { count: number; problem?: ReturnType<typeof problem> } {
    if (isPair(node)) return readAll([node.key, node.value]);
    if (!isNode(node)) return { count: 0 };
    if (isAlias(node)) {
      const count = anchors.get(node.source);
      if (count === undefined)
        return {
          count: 0,
          problem: problem(node, `*${node.source} stands for nothing: no &${node.source} comes before it`),
        };
      if (count === 'open')
        return {
          count: 0,
          problem: problem(node, `*${node.source} stands inside of what it stands for; write it out`),
        };
      aliasedCount += count;
      if (aliasedCount <= MAX_ALIASED_VALUES) return { count };
      const message = `with *${node.source} the file has more than ${MAX_ALIASED_VALUES} values by aliases; use fewer of them`;
      return { count, problem: problem(node, message) };
    }
    const { anchor } = node;
    if (anchor !== undefined) anchors.set(anchor, 'open');
    const found = isCollection(node) ? readAll(node.items) : { count: 0 };
    const count = found.count + 1;
    if (anchor !== undefined) anchors.set(anchor, count);
    return { ...found, count };
  }

  function readAll(nodes: readonly unknown[]): ReturnType<typeof read> {
    let count = 0;
    for (const node of nodes) {
      const found = read(node);
      count += found.count;
      if (found.problem !== undefined) return found;
    }
    return { count };
  }
}

/** Replaces `${env:NAME}` and `${env:NAME:-default}` in every text, so that secrets can stay out of the file. */
function fillIn(value: unknown, environment: Environment, unset: string[]): unknown {
  if (typeof value === 'string') {
    return value.replaceAll(/\$\{env:([A-Za-z_]\w*)(?::-([^{}]*))?\}/g, (_, name: string, otherwise?: string) => {
      const text = environment[name] === '' && otherwise !== undefined ? undefined : environment[name];
      if (text === undefined && otherwise === undefined) unset.push(name);
      return text ?? otherwise ?? '';
    });
  }
  if (Array.isArray(value)) return value.map((item) => fillIn(item, environment, unset));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillIn(item, environment, unset)]));
}

/** What a configuration file sets. */
export interface FileValues
  extends Pick<
    Configuration,
    'mapping' | 'destinations' | 'kafkaSource' | 'journal' | 'jobs' | 'projects' | 'environments'
  > {
  readonly values: Partial<SettingValues>;
}

/** Reads one entry of `jobs:`, all but its name. */
export function jobSchema({ baseDir, homeDir }: SettingContext) {
  return z
    .strictObject(
      {
        ...declaredShape,
        project: nameSchema.nullish(),
        environment: nameSchema.nullish(),
        command: commandsSchema.nullish(),
        'steps-override': z.boolean('is not true or false').nullish(),
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
        expect: z
          .string(EXPECTED_PROBLEM)
          .transform((text, context) => parseExpectedMs(text) ?? reject(context, EXPECTED_PROBLEM))
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
        takesOtherSteps: value['steps-override'] ?? false,
        workingDir: parsePath(value['working-dir'] ?? '', { baseDir, homeDir }) ?? baseDir,
        variables: value.env ?? {},
        targetName: value.target ?? null,
        threads: value.threads ?? null,
        timeoutMs: value.timeout ?? null,
        expectMs: value.expect ?? null,
      }),
    )
    .refine((job) => !job.takesOtherSteps || engineCommandOf(job) !== undefined, {
      path: ['steps-override'],
      message: 'needs a command that begins with dbt: other steps are run by the program of that',
    });
}

const variableSchema = z
  .union([z.string(), z.number(), z.boolean()], 'is not a text')
  .transform(String)
  .refine((text) => !text.includes('\0'), 'holds a zero byte');

/** One line, or a list of lines and of argument lists. Checked by hand: the errors of a union do not name the wrong line. */
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
    if ('words' in split) return split.words;
    const orShell = split.isForShell ? ", or write [sh, -c, '…']" : '';
    return reject(context, `${JSON.stringify(value)} ${split.problem}${orShell}`, path);
  }
  const words = wordsSchema.safeParse(value).data;
  if (words === undefined) return reject(context, 'is not a line such as "dbt build" or a list of arguments', path);
  const problem = problemOfWords(words);
  return problem === undefined ? words : reject(context, problem, path);
}

const wordsSchema = z.array(z.union([z.string(), z.number(), z.boolean()]).transform(String));

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

/** What a configuration file sets, and what is wrong with it. */
export interface FileReading {
  readonly path: string;
  /** `undefined` where there are problems. */
  readonly values: FileValues | undefined;
  readonly problems: readonly string[];
  /** `path:line` of a key or value in it. */
  locate(keys: readonly PropertyKey[]): string;
}

/** What reading the file takes beside its text. */
export interface FileReadingContext {
  readonly environment: Environment;
  readonly homeDir: string;
  /** Whether destinations are read: a command that exports nothing needs neither them nor their secrets. Left out: yes. */
  readonly isExporting?: boolean;
}

/** Names of destinations become keys of state and part of messages, so they are plain. */
const DESTINATION_NAME = /^[a-z0-9][a-z0-9_-]{0,62}$/i;

/** Schema of `run-bridge.yaml`; strict, so that a misspelt key is reported. */
export function fileSchema(context: SettingContext): z.ZodType<FileValues> {
  const settings = Object.fromEntries(SETTING_KEYS.map((key) => [key, settingSchema(key, context).nullish()]));
  const destinations = z.record(
    z.string().regex(DESTINATION_NAME, 'is not a name of letters, digits, - and _'),
    destinationSchema(context),
    'is not a list of named destinations',
  );
  const sources = z.strictObject(
    { kafka: kafkaSourceSchema(context).nullish() },
    'is not a list of sources such as kafka',
  );
  const journal = z.strictObject({ kafka: kafkaJournalSchema(context) }, 'is not the setting kafka');
  const scopeSections = {
    jobs: namedSchema(jobSchema(context), 'is not a list of named jobs').nullish(),
    projects: namedSchema(projectSchema, 'is not a list of named projects').nullish(),
    environments: namedSchema(environmentSchema, 'is not a list of named environments').nullish(),
  };
  return z
    .strictObject(
      {
        ...settings,
        mapping: mappingSchema.nullish(),
        destinations: destinations.nullish(),
        sources: sources.nullish(),
        journal: journal.nullish(),
        ...scopeSections,
      },
      'the file does not hold settings such as "http: 127.0.0.1:4318"',
    )
    .transform(({ mapping: switches, destinations: named, sources: from, journal: shared, ...rest }) => {
      const { jobs, projects, environments, ...values } = rest;
      const set = Object.entries(values).filter(([, value]) => value != null);
      return {
        values: Object.fromEntries(set) as Partial<SettingValues>,
        mapping: switches ?? {},
        destinations: listOf(named),
        kafkaSource: from?.kafka ?? null,
        journal: shared?.kafka ?? null,
        jobs: listOf(jobs),
        projects: listOf(projects),
        environments: listOf(environments),
      };
    });
}

/** Entries by name; an entry may be empty. */
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

/** Names that are allowed at a path of the file, to suggest one for a misspelt key. */
export function knownNames(path: readonly PropertyKey[]): readonly string[] {
  if (path.length === 0) {
    return [...SETTING_KEYS, 'mapping', 'destinations', 'sources', 'journal', 'jobs', 'projects', 'environments'];
  }
  if (path.at(-1) === 'mapping') return Object.keys(MAPPING_SWITCHES);
  if (path.at(-2) === 'match') return RULE_KEYS;
  if (path[0] === 'sources') return path.length === 1 ? ['kafka'] : SOURCE_KEYS;
  if (path[0] === 'journal') return path.length === 1 ? ['kafka'] : JOURNAL_KEYS;
  if (path[0] === 'projects' || path[0] === 'environments') return SCOPE_KEYS;
  if (path[0] === 'jobs') return JOB_KEYS;
  return path[2] === 'kafka' ? KAFKA_DESTINATION_KEYS : DESTINATION_KEYS;
}

const RULE_KEYS: readonly string[] = ['command', 'target', 'resource'];
const SCOPE_KEYS = Object.keys(environmentSchema.in.shape);
const SOURCE_KEYS = Object.keys(kafkaSourceSchema({ baseDir: '/', homeDir: '/' }).in.shape);
const JOURNAL_KEYS = Object.keys(kafkaJournalSchema({ baseDir: '/', homeDir: '/' }).in.shape);
const KAFKA_DESTINATION_KEYS = Object.keys(kafkaDestinationSchema({ baseDir: '/', homeDir: '/' }).in.shape);
const JOB_KEYS = Object.keys(jobSchema({ baseDir: '/', homeDir: '/' }).in.shape);
const DESTINATION_KEYS = Object.keys(destinationSchema({ baseDir: '/', homeDir: '/' }).in.shape);

function settingSchema<K extends SettingKey>(key: K, settingContext: SettingContext): z.ZodType<SettingValues[K]> {
  const setting = SETTINGS[key];
  return z.union([z.string(), z.number(), z.boolean()], `is not ${setting.expected}`).transform((value, context) => {
    const parsed = setting.parse(String(value), settingContext);
    if (parsed !== undefined) return parsed;
    return reject(context, `${setting.isSecret ? 'the value' : quoted(value)} is not ${setting.expected}`);
  });
}

/**
 * Reads a configuration file. Brings the packages for YAML and schemas, so commands load this module only where there is a
 * file.
 * @throws ConfigurationError when it is not YAML, or names an environment variable that is not set.
 */
export function readConfigurationFile(found: FoundFile, context: FileReadingContext): FileReading {
  const unread = context.isExporting === false ? ['destinations'] : [];
  const file = parseConfigurationFile(found, context.environment, unread);
  const { path, locate } = file;
  const schema = fileSchema({ baseDir: dirname(path), homeDir: context.homeDir });
  const result = schema.safeParse(file.content);
  if (result.success) return { path, locate, values: result.data, problems: [] };
  const problems = result.error.issues.flatMap((issue) => describeIssue(issue, file));
  return { path, locate, values: undefined, problems };
}

function describeIssue(issue: z.core.$ZodIssue, file: ConfigurationFile): string[] {
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => {
      const isMapping = issue.path.at(-1) === 'mapping';
      const name = [...issue.path, maskUrl(key)].join('.');
      const removed = removedProblem(isMapping ? `mapping.${key}` : issue.path.length === 0 ? key : '', name);
      if (removed !== undefined) return `${file.locate([...issue.path, key])}: ${removed}`;
      const nearest = nearestName(key, knownNames(issue.path));
      const hint = nearest === undefined ? 'see "run-bridge config" for all of them' : `did you mean ${nearest}?`;
      return `${file.locate([...issue.path, key])}: ${name} is not a setting; ${hint}`;
    });
  }
  // A name that is refused stands in an issue of its own inside the record's issue.
  const message = issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message;
  return [`${file.locate(issue.path)}: ${[...issue.path, message].join('.').replace(`.${message}`, ` ${message}`)}`];
}
