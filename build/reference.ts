import { NATIVE_PATHS } from '../src/api/native/native-paths.js';
import { BRIDGE_PATHS, mergedPaths } from '../src/api/openapi/openapi-router.js';
import { PERMISSIONS, type Right } from '../src/api/permissions.js';
import { ARTIFACT_PATHS } from '../src/artifact/openapi.js';
import type { CliCommand } from '../src/cli/command.js';
import { COMMANDS } from '../src/commands/run-cli.js';
import { MAPPING_SWITCHES } from '../src/config/mapping-options.js';
import { STEP_WORDS } from '../src/config/run-commands.js';
import { environmentName, SETTING_KEYS, SETTINGS } from '../src/config/settings.js';
import { jobRunPaths } from '../src/job/routes.js';
import { METRICS, type MetricDefinition } from '../src/metric/metrics.js';
import { type Field, type FieldType, type MessageType, PublicSchema } from '../src/otlp/public-schema.js';
import { runSchema } from '../src/platform/documents.js';
import { V2_PATHS } from '../src/platform/routes.js';
import { QUERY_PATHS } from '../src/query/routes.js';
import {
  type AttributePolicy,
  EVENTS,
  type FieldKind,
  type FieldRow,
  fieldsOfMessage,
} from '../src/record/event-table.js';

export { reportSchema } from '../src/report/schema.js';
export { grafanaDashboards } from './dashboards.js';

import { RESEND_PATHS } from '../src/export/resend-routes.js';
import { attributePolicyOf, KNOWN_EVENTS } from '../src/redaction/known-names.js';
import { REMOVAL_PATHS } from '../src/retention/routes.js';
import { eventName } from '../src/run/node-outcome.js';
import { COMMAND_WORDS, NO_OP_WORDS, NODE_WORDS, RUN_WORDS } from '../src/run/words.js';
import { PERMISSION_SETS, RUN_STATUS, STATUS_NAMES } from '../src/storage/state-tables.js';
import { WEBHOOK_PATHS } from '../src/webhook/routes.js';

/**
 * The parts of docs/reference and docs/operate.md that the program's own tables make, by their names: a page has
 * `<!-- npm run docs makes: NAME -->` and `<!-- end -->` around each.
 */
export function referenceBlocks(): Readonly<Record<string, string>> {
  return {
    settings: table(
      ['key and flag', 'variable', 'default', 'what'],
      SETTING_KEYS.map((key) => {
        const { summary, defaultText } = SETTINGS[key];
        return [code(key), code(environmentName(key)), defaultText === null ? '' : code(defaultText), summary];
      }),
    ),
    'mapping switches': table(
      ['switch', 'what'],
      Object.entries(MAPPING_SWITCHES).map(([name, what]) => [code(name), what]),
    ),
    'metrics of the process': metrics(
      (name) => ![RUNS, INTAKE, DESTINATIONS, WEBHOOKS].some((group) => group.test(name)),
    ),
    'metrics of runs': metrics((name) => RUNS.test(name)),
    'metrics of what comes in': metrics((name) => INTAKE.test(name)),
    'metrics of destinations': metrics((name) => DESTINATIONS.test(name)),
    'metrics of webhooks': metrics((name) => WEBHOOKS.test(name)),
    events: events(),
    attributes: attributes(),
    routes: routes(),
    commands: COMMANDS.map(command).join('\n\n'),
    permissions: permissions(),
    words: words(),
    'steps of a run': table(
      ['of a step', 'words'],
      [
        ['commands', codes(STEP_WORDS.commands)],
        ['flags with a value', codes(STEP_WORDS.valued)],
        ['switches, most of them with `--no-`, too', codes(STEP_WORDS.switches)],
        ["kept of the job's command, refused in a step", codes(STEP_WORDS.places)],
      ],
    ),
  };
}

/** A page with its blocks as they are now. @throws Error for a block that nothing makes */
export function withBlocks(page: string, blocks: Readonly<Record<string, string>>): string {
  return page.replaceAll(/(<!-- npm run docs makes: (.+) -->\n)[\s\S]*?(<!-- end -->)/g, (_, begin, name, end) => {
    const block = blocks[name];
    if (block === undefined)
      throw new Error(`Nothing makes the block "${name}"; build/reference.ts has those that there are.`);
    return `${begin}${block}\n${end}`;
  });
}

const RUNS = /^(cicd_|run_bridge_(run|last_run|left_out)_)/;
const INTAKE = /^run_bridge_(connections|dropped|receiver|kafka|journal|builder)/;
const DESTINATIONS = /^run_bridge_destination/;
const WEBHOOKS = /^run_bridge_webhook/;

function metrics(isWanted: (name: string) => boolean): string {
  const definitions: readonly (readonly [string, MetricDefinition])[] = Object.entries(METRICS);
  const rows = definitions
    .filter(([name]) => isWanted(name))
    .map(([name, { kind, labels, help }]) => [code(name), kind, labels.map(code).join(', '), help]);
  return table(['metric', 'kind', 'labels', 'what'], rows);
}

const WORDS: Readonly<Record<AttributePolicy, string>> = {
  keep: 'as it is',
  name: 'as it is, where it looks like a name',
  sql: 'statement',
  command: 'command line without secrets',
  diffTable: 'columns and count of rows',
  text: 'message',
  ownWords: 'message',
  deny: 'never shown',
};

/** Every event type of the public schema that this version knows, with its fields. */
function events(): string {
  const schema = PublicSchema.load();
  const messages = schema.messageNames
    .flatMap((name) => schema.message(name) ?? [])
    .filter(({ fullName }) => KNOWN_EVENTS.has(eventName(fullName)))
    .sort((one, other) => one.fullName.localeCompare(other.fullName));
  return messages.map(event).join('\n\n');
}

function event(message: MessageType): string {
  const rows = message.fields.map((field) => [code(field.name), kindOf(field), redactionOf(field, message.fullName)]);
  const head = `## ${eventName(message.fullName)}\n${code(message.fullName)}`;
  return rows.length === 0 ? `${head}: no fields.` : `${head}\n\n${table(['field', 'kind', 'exported'], rows)}`;
}

function redactionOf({ name, type, isRepeated }: Field, eventType: string): string {
  if (type.kind === 'enum') return WORDS.keep;
  if (type.kind === 'message') return 'each of its fields';
  if (type.kind === 'map') return WORDS[attributePolicyOf(`${name}.`, eventType)];
  if (type.kind === 'string') return WORDS[attributePolicyOf(name, eventType)];
  return isRepeated ? 'JSON text' : WORDS.keep;
}

function kindOf({ type, isRepeated }: Field): string {
  return isRepeated ? `list of ${typeName(type)}` : typeName(type);
}

function typeName(type: FieldType): string {
  switch (type.kind) {
    case 'enum': {
      const names = [...type.enum.numberByName.keys()];
      return names.length > 8
        ? `one of ${names.slice(0, 8).map(code).join(', ')} …`
        : `one of ${names.map(code).join(', ')}`;
    }
    case 'message':
      return `${eventName(type.message.fullName)}: ${type.message.fields.map(({ name }) => code(name)).join(', ')}`;
    case 'map':
      return `map of ${type.keyKind} to ${typeName(type.value)}`;
    case 'string':
      return 'text';
    case 'bool':
      return 'true or false';
    default:
      return type.kind;
  }
}

const KINDS: Readonly<Record<FieldKind, string>> = {
  text: 'text',
  int64: 'integer',
  int32: 'integer',
  bool: 'true or false',
  double: 'number',
  enum: 'name of a value',
  enumNumber: 'integer',
  nested: 'list or JSON text',
};

/** Every attribute that exports copy from the engine's fields: its kind, its redaction, its place in Parquet and its event types. */
function attributes(): string {
  const rows = [...EVENTS].flatMap(([eventType, { fields, parquet }]) =>
    Object.entries(fields).flatMap(([field, row]) =>
      attributesOf(field, row).map(({ name, kind }) => ({
        name: kind === 'entries' ? `${name}.…` : name,
        kind: kind === 'entries' ? KINDS.int64 : KINDS[kind],
        exported: exportedText(kind, parquet?.map === name ? `${name}.` : name, eventType),
        column: columnOf(row),
        event: eventName(eventType),
      })),
    ),
  );
  const cells = (name: string) => {
    const same = rows.filter((row) => row.name === name);
    return (['kind', 'exported', 'column', 'event'] as const).map((key) =>
      [...new Set(same.map((row) => row[key]))].filter((text) => text !== '').join(', '),
    );
  };
  const names = [...new Set(rows.map(({ name }) => name))].sort();
  return table(
    ['attribute', 'kind', 'exported', 'Parquet', 'of'],
    names.map((name) => [code(name), ...cells(name)]),
  );
}

interface ExportedAttribute {
  readonly name: string;
  /** `entries`: a map of integers, one attribute for each entry. */
  readonly kind: FieldKind | 'entries';
}

function attributesOf(name: string, { kind, message, lifted, entries }: FieldRow): readonly ExportedAttribute[] {
  if (message === undefined) return [{ name, kind: entries === undefined ? kind : 'entries' }];
  const prefix = lifted === undefined ? `${name}.` : '';
  return Object.entries(fieldsOfMessage(message)).flatMap(([inner, row]) => attributesOf(prefix + inner, row));
}

function exportedText(kind: ExportedAttribute['kind'], name: string, eventType: string): string {
  return WORDS[kind === 'text' || kind === 'nested' ? attributePolicyOf(name, eventType) : 'keep'];
}

function columnOf({ column, isInPayload, isOutcomeDetail }: FieldRow): string {
  if (column !== undefined) return code(column);
  return isInPayload === true || isOutcomeDetail === true ? code('json_payload') : '';
}

const METHODS = ['get', 'put', 'post', 'patch', 'delete', 'head'] as const;

/** Every route, as `GET /api/openapi.json` describes it. */
function routes(): string {
  const paths = mergedPaths([
    ...[BRIDGE_PATHS, V2_PATHS, jobRunPaths(runSchema), NATIVE_PATHS, REMOVAL_PATHS, RESEND_PATHS],
    ...[QUERY_PATHS, WEBHOOK_PATHS, ARTIFACT_PATHS],
  ]);
  const rows = Object.entries(paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const summary = item?.[method]?.summary;
      return summary === undefined ? [] : [[code(`${method.toUpperCase()} ${path}`), summary]];
    }),
  );
  return table(['request', 'what'], rows);
}

function command({ name, operands, summary, flags, settings, examples }: CliCommand): string {
  const usage = `run-bridge ${name}${operands === '' ? '' : ` ${operands}`}`;
  const listed = settings === SETTING_KEYS ? 'all' : settings.map((key) => `\`--${key}\``).join(', ');
  const taken = settings.length === 0 ? '' : `\nIts settings: ${listed}.\n`;
  const rows = flags.map(([flag, what]) => [code(flag), what]);
  const own = rows.length === 0 ? '' : `\n${table(['option', 'what'], rows)}\n`;
  const lines = examples.map(([line, what]) => `${line}    # ${what}`);
  const sample = lines.length === 0 ? '' : `\n\`\`\`sh\n${lines.join('\n')}\n\`\`\`\n`;
  return `## ${name}\n${code(usage)}: ${summary}.\n${own}${taken}${sample}`.trimEnd();
}

/** What each word says. */
const WORD_MEANINGS: Readonly<Record<string, string>> = {
  queued: 'it waits for others of its job',
  starting: 'no telemetry has come yet',
  running: 'it is under way',
  success: 'nothing failed',
  failed: 'with a failure; of nodes a test or a stale source',
  canceled: 'it was cut short',
  lost: 'no end was seen',
  error: 'it could not be made or tested',
  unfinished: 'its end was not seen',
  skipped: 'it was not tried',
  'no-op': 'skipped: there was nothing to do',
  warned: 'a test or source warns',
};

function words(): string {
  const codeOf = (names: readonly string[]) => (names.length === 0 ? '' : codes(names));
  const runs = Object.values(RUN_STATUS).map((status) => [RUN_WORDS[status], STATUS_NAMES[status]] as const);
  const commands = Object.entries(COMMAND_WORDS).map(([verdict, word]) => [word, verdict] as const);
  const nodes = [
    ...Object.entries(NODE_WORDS).map(([verdict, [one]]) => [one, verdict] as const),
    [NO_OP_WORDS[0], 'skipped'] as const,
  ];
  const all = [...new Set([...runs, ...commands, ...nodes].map(([word]) => word))];
  const namesOf = (list: typeof nodes, word: string) =>
    codeOf(list.filter(([one]) => one === word).map(([, name]) => name));
  return table(
    ['word', 'what', '`status` of a run', '`verdict` of a command', '`verdict` of a node'],
    all.map((word) => [
      word,
      WORD_MEANINGS[word] ?? '',
      namesOf(runs, word),
      namesOf(commands, word),
      namesOf(nodes, word),
    ]),
  );
}

function permissions(): string {
  const rights = [...new Set<Right>(PERMISSION_SETS.flatMap((name) => PERMISSIONS[name]))];
  const rows = rights.map((right) => [
    code(right),
    ...PERMISSION_SETS.map((name) => (PERMISSIONS[name].includes(right) ? 'x' : '')),
  ]);
  return table(['right', ...PERMISSION_SETS.map(code)], rows);
}

function table(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(heads), `|${'---|'.repeat(heads.length)}`, ...rows.map(line)].join('\n');
}

function code(text: string): string {
  return `\`${text}\``;
}

function codes(texts: readonly string[]): string {
  return texts.map(code).join(', ');
}
