import { ageText, counted } from '../../core/text.js';
import { isUnitTestId } from '../../storage/manifest.js';
import { hasOwnWord } from '../verdict.js';
import type { NodeMeasure } from './node-measure.js';
import type { CommandMeasures } from './run-totals.js';

/** Something of a command that did not go well. */
export interface Trouble {
  /** `model orders`; `null` where no node is the cause. */
  readonly label: string | null;
  readonly node: NodeMeasure | null;
  /** The file of the project, and the line in it, where it is. */
  readonly path: string | null;
  readonly line: number | null;
  /** Why, the cause first. */
  readonly reason: readonly string[];
  /** Labels of the nodes that were skipped because of it. */
  readonly skipped: readonly string[];
}

/** Troubles of one kind. */
export interface TroubleSection {
  /** For example `2 nodes failed with an error`. */
  readonly title: string;
  readonly severity: 'error' | 'warning' | 'note';
  /** Whether these are nodes that were interrupted, or never ended. */
  readonly isOfCutNodes: boolean;
  readonly troubles: readonly Trouble[];
}

/** What did not go well, the worst first. */
export function troublesOf(command: CommandMeasures): readonly TroubleSection[] {
  const { hooks } = command;
  const { nodes, messages } = withLoneMessage(command);
  const skipped = skippedByCause(nodes);
  const of = (verdict: string) => nodes.filter((node) => node.verdict === verdict && node.freshness === null);
  const trouble = (node: NodeMeasure) => nodeTrouble(node, skipped.get(node.uniqueId) ?? []);
  const stale = (verdict: string) =>
    nodes.filter((node) => node.verdict === verdict && node.freshness !== null).map(trouble);
  const badHooks = hooks.filter(({ verdict }) => verdict !== 'success');
  const hookTroubles = badHooks.map(({ uniqueId, verdict, message }) => ({
    ...(message === null ? { ...NO_NODE, reason: [verdict] } : errorTrouble(message)),
    label: uniqueId,
  }));
  const errors = messages.map(errorTrouble);
  return [
    section('error', of('error').map(trouble), 'node failed with an error', 'nodes failed with an error'),
    section('error', hookTroubles, 'hook did not succeed', 'hooks did not succeed'),
    section('error', of('failed').map(trouble), 'test failed', 'tests failed'),
    section('error', stale('failed'), 'source is stale', 'sources are stale'),
    section('error', errors, 'error of the run', 'errors of the run'),
    section('warning', of('warned').map(trouble), 'test has a warning', 'tests have a warning'),
    section('warning', stale('warned'), 'source is getting stale', 'sources are getting stale'),
    cut(of('canceled').map(trouble), 'node was canceled', 'nodes were canceled'),
    cut(of('unfinished').map(trouble), 'node did not finish', 'nodes did not finish'),
    section(
      'note',
      nodes.filter(hasOwnWord).map((node) => ({ ...trouble(node), reason: [node.verdict] })),
      'node has an outcome of its own',
      'nodes have an outcome of their own',
    ),
  ].filter(({ troubles }) => troubles.length > 0);
}

/** An error that says where in the project it is; also a redacted one. */
const NAMES_LOCATION = /^\s*--> /m;

/**
 * A command's nodes and the errors that are of none of them, nor of a hook, whose error the engine sends without it as well.
 * The engine sends some errors, such as that of a seed's file, without their node: where it sent one alone, with no location, and one
 * node failed without a message, that is the node's.
 */
export function withLoneMessage({
  nodes,
  hooks,
  messages: all,
}: Pick<CommandMeasures, 'nodes' | 'hooks' | 'messages'>): Pick<CommandMeasures, 'nodes' | 'messages'> {
  const ofHooks = new Set(hooks.map(({ message }) => message));
  const messages = all.filter((message) => !ofHooks.has(message));
  const [message] = messages;
  const [silent, ...others] = nodes.filter(({ verdict }) => verdict === 'error');
  if (message === undefined || messages.length > 1 || NAMES_LOCATION.test(message)) return { nodes, messages };
  if (silent === undefined || others.length > 0 || silent.message !== null) return { nodes, messages };
  return { nodes: nodes.map((node) => (node === silent ? { ...node, message } : node)), messages: [] };
}

const NO_NODE = { label: null, node: null, path: null, line: null, skipped: [] } as const;

/** An error of no node. */
function errorTrouble(text: string): Trouble {
  return { ...NO_NODE, ...errorLocation(text), reason: readableLines(text) };
}

function section(
  severity: TroubleSection['severity'],
  troubles: readonly Trouble[],
  noun: string,
  plural: string,
): TroubleSection {
  return { severity, isOfCutNodes: false, troubles, title: counted(troubles.length, noun, plural) };
}

function cut(troubles: readonly Trouble[], noun: string, plural: string): TroubleSection {
  return { ...section('note', troubles, noun, plural), isOfCutNodes: true };
}

/** Labels of skipped nodes by the unique id of the node that is the cause. */
export function skippedByCause(nodes: readonly NodeMeasure[]): ReadonlyMap<string, readonly string[]> {
  return new Map([...skippedNodes(nodes)].map(([cause, skipped]) => [cause, skipped.map(labelOf)]));
}

/** Skipped nodes by the unique id of the node that is the cause. */
function skippedNodes(nodes: readonly NodeMeasure[]): ReadonlyMap<string, readonly NodeMeasure[]> {
  const skipped = new Map(nodes.filter(({ verdict }) => verdict === 'skipped').map((node) => [node.uniqueId, node]));
  const byCause = new Map<string, NodeMeasure[]>();
  for (const node of skipped.values()) {
    const cause = causeOfSkip(node, skipped);
    if (cause === null) continue;
    const known = byCause.get(cause);
    if (known === undefined) byCause.set(cause, [node]);
    else known.push(node);
  }
  return byCause;
}

function nodeTrouble(node: NodeMeasure, skipped: readonly string[]): Trouble {
  const { relativePath, definedAtLine, message } = node;
  const location = message === null ? null : errorLocation(message);
  const isOwn = location !== null && location.path === relativePath && location.line !== null;
  return {
    label: labelOf(node),
    node,
    path: relativePath,
    line: isOwn ? location.line : definedAtLine,
    reason: reasonLines(node),
    skipped,
  };
}

/** The location in the project that an error names. */
function errorLocation(text: string): Pick<Trouble, 'path' | 'line'> {
  const location = sourceLocation(text);
  if (location === null) return { path: null, line: null };
  const [, path = location, line] = /^(.*?)(?::(\d+))?$/.exec(location) ?? [];
  return { path, line: line === undefined ? null : Number(line) };
}

/** Why a node did not go well, in lines. A test whose query failed counts as one with a failing row: its message is the reason. */
function reasonLines({ freshness, failingRows, diffTable, message, nodeType }: NodeMeasure): readonly string[] {
  if (freshness !== null) {
    return freshness.ageSeconds === null ? [] : [`last updated ${ageText(freshness.ageSeconds)} ago`];
  }
  const messageLines = message === null ? [] : readableLines(message);
  if (diffTable !== null)
    return ['expected and actual rows differ', ...diffTable.trimEnd().split('\n'), ...messageLines];
  if (messageLines.length > 0 || failingRows === null) return messageLines;
  return [
    counted(
      failingRows,
      nodeType === 'unit_test' ? 'row differs' : 'failing row',
      nodeType === 'unit_test' ? 'rows differ' : 'failing rows',
    ),
  ];
}

/** `models/orders.sql:3`; `null` where no file is known. */
export function troubleLocation({ path, line }: Pick<Trouble, 'path' | 'line'>): string | null {
  return path === null ? null : locationText(path, line);
}

/** Names that a command line is made of. */
const PLAIN_NAME = /^[\w.-]{1,200}$/;
/** Commands that take `--select` and work on what it names. */
const SELECTING = new Set<string | null>(['build', 'run', 'test', 'seed', 'snapshot']);
/** Names in a command line that is to be copied. */
const MAX_SELECTED = 8;

/**
 * The command that tries again what failed, and what was skipped because of it: `dbt build --select orders+`. `null` where
 * nothing failed, or it selects no nodes.
 */
export function retryCommand({ invocation, nodes }: CommandMeasures): string | null {
  const failed = nodes.filter(
    (node) => (node.verdict === 'error' || node.verdict === 'failed') && node.freshness === null,
  );
  const program = programOf(invocation);
  if (program === null || failed.length === 0) return null;
  const skipped = skippedNodes(nodes);
  // What comes after a model is selected with it; what comes after a test is not.
  const behindTests = failed
    .filter(({ nodeType }) => nodeType === 'test')
    .flatMap((test) => skipped.get(test.uniqueId) ?? []);
  const again = [...failed, ...behindTests.filter((node) => !isTest(node))];
  return selectCommand(invocation, again) ?? selectCommand(invocation, failed) ?? `${program} retry`;
}

type Selected = Pick<NodeMeasure, 'uniqueId' | 'name' | 'verdict' | 'nodeType'>;

/**
 * The command that runs these nodes: one with an error with what comes after it, a test with what it tests, where the command
 * makes that, too. `null` where they have no short names.
 */
export function selectCommand(invocation: CommandMeasures['invocation'], nodes: readonly Selected[]): string | null {
  const program = programOf(invocation);
  if (program === null || nodes.length === 0) return null;
  const names = [...new Set(nodes.map((node) => selectorOf(node, invocation.command === 'build')))];
  const isShort = names.length <= MAX_SELECTED && names.every((name) => PLAIN_NAME.test(name.replace(/^1\+|\+$/g, '')));
  return isShort ? `${program} ${invocation.command} --select ${names.join(' ')}` : null;
}

/** @param hasModels whether the command makes models and not only tests them: a test alone would look at the old one again */
function selectorOf(node: Selected, hasModels: boolean): string {
  const { uniqueId, verdict, nodeType } = node;
  // The engine selects a version of a model by it, and of a unit test by its name alone.
  const own = (isTest(node) ? node.name : nameOf(node)) ?? '?';
  if (!isTest(node)) return verdict === 'error' ? `${own}+` : own;
  if (!hasModels) return own;
  if (nodeType === 'test') return `1+${own}`;
  // A unit test is run before its model.
  const tested = testedModelOf(uniqueId, own);
  return tested === null ? own : `${tested}+`;
}

function isTest({ nodeType }: Pick<NodeMeasure, 'nodeType'>): boolean {
  return nodeType === 'test' || nodeType === 'unit_test';
}

/** What was typed before the command; `null` where the command selects no nodes. */
function programOf({ command, rawCommand }: CommandMeasures['invocation']): string | null {
  if (!SELECTING.has(command)) return null;
  const [word = ''] = rawCommand?.split(' ') ?? [];
  const program = word.slice(word.lastIndexOf('/') + 1);
  return PLAIN_NAME.test(program) ? program : null;
}

/** `model orders`, `model orders.v2`, `unit test paid_revenue`, `source erp.orders`. */
export function labelOf({ uniqueId, nodeType, name }: Pick<NodeMeasure, 'uniqueId' | 'nodeType' | 'name'>): string {
  const [prefix = '', , ...rest] = uniqueId.split('.');
  const type = nodeType ?? prefix;
  // A test's own name is longer than its `name`: the id ends with a hash. A source has the name of its table alone.
  const own = type === 'source' ? rest.join('.') : (nameOf({ uniqueId, name }) ?? rest.join('.'));
  return own === '' ? uniqueId : `${type.replaceAll('_', ' ')} ${own}`;
}

/** Follows skips to the node that was not skipped itself. */
function causeOfSkip(node: NodeMeasure, skipped: ReadonlyMap<string, NodeMeasure>): string | null {
  const seen = new Set<string>();
  let cause = node.skipUpstream;
  while (cause !== null && !seen.has(cause)) {
    seen.add(cause);
    const next = skipped.get(cause)?.skipUpstream ?? null;
    if (next === null) return cause;
    cause = next;
  }
  return cause;
}

/** Lines before a cause that name what the message names anyway. */
const HEADS = [/^[A-Za-z]+ Error in [a-z_ ]+ \S+ \([^)]*\)$/, /^Error materializing test \S+(?: \([^)]*\))?$/] as const;
/** Words before a cause, in the order in which they stand. */
const PREFIXES = [
  /^Internal: /,
  /^Error executing materialization macro \S+ for [a-z_]+ \S+: /,
  /^Failed to eval the compiled Jinja expression /,
  /^Failed to (?:render SQL|run operation) /,
  /^invalid operation: /,
  /^unknown (?:function|filter|test|method): /,
  /^Compilation Error(?: for \S+ from [^:]*)?: /,
  /^ERROR: /,
] as const;
/** Places in compiled code, of which that in a macro has no path; codes, and marks below a column, which mean nothing in a proportional font. */
const NOISE =
  /^(?:\(in (?:.*:\d+:\d+|:\?)\)\.?(?: Treating as failing test\.)?|--> .*|\(SQLSTATE: \w+\)|[\^~\s]*(?:\(sqlstate: [^()]*\))?)$/;
/** The line of the project's own code that an error is about. */
const SOURCE_LINE = /^--> ((?!(?:target|run)\/|<)[^\s:]+)(?::(\d+):\d+)?$/m;
/** An error's lines for people: the cause first, without what says where in the compiled code it happened. */
export function readableLines(reason: string): readonly string[] {
  const lines = reason
    .split('\n')
    .map((line) => line.trim().replaceAll(/\s+/g, ' '))
    .filter((line) => !NOISE.test(line));
  const [head = '', ...rest] = lines;
  const [first = '', ...more] = rest.length > 0 && HEADS.some((pattern) => pattern.test(head)) ? rest : lines;
  const cause = PREFIXES.reduce((text, prefix) => text.replace(prefix, ''), first);
  // The engine joins an error and its cause, which may be the same words.
  const once = withoutRepeat(cause.replace(': ERROR: ', ': ')).replace(/:$/, '');
  return once === '' ? more : [once, ...more];
}

/** An error with its cause first and all else behind it, where it may be cut. */
export function causeFirst(reason: string): string {
  const [cause] = readableLines(reason);
  const all = reason.split('\n');
  const plain = (line: string) => line.trim().replaceAll(/\s+/g, ' ');
  const [head, second] = all.filter((line) => !NOISE.test(plain(line)));
  if (cause === undefined || head === undefined) return reason;
  const hasHead = second !== undefined && HEADS.some((pattern) => pattern.test(plain(head)));
  const dropped = new Set(hasHead ? [head, second] : [head]);
  return [cause, ...all.filter((line) => !dropped.has(line))].join('\n').trimEnd();
}

/** Fewer characters are no error that is said twice. */
const MIN_REPEATED = 10;

/** Drops the end of a text that repeats what stands before its colon. */
function withoutRepeat(text: string): string {
  // A pattern with a back reference would take time by the square of the length.
  for (let at = text.indexOf(': ', MIN_REPEATED); at >= 0; at = text.indexOf(': ', at + 1)) {
    const rest = text.slice(at + 2);
    if (rest.length >= MIN_REPEATED && text.slice(0, at).endsWith(rest)) return text.slice(0, at);
  }
  return text;
}

/** Where in the project an error is, such as `models/orders.sql:3`; `null` where its text does not say so. */
export function sourceLocation(reason: string): string | null {
  const found = SOURCE_LINE.exec(reason.replaceAll(/^\s+/gm, ''));
  return found === null ? null : locationText(found[1] ?? '', found[2] ?? null);
}

export function locationText(path: string, line: number | string | null): string {
  return line === null ? path : `${path}:${line}`;
}

/**
 * The name of a node, with its version where it has one: `orders.v2` of `model.shop.orders.v2`, whose `name` is `orders`, and
 * `adds_up.v2` of `unit_test.shop.orders.adds_up.v2`.
 */
export function nameOf({ uniqueId, name }: { readonly uniqueId: string; readonly name: string | null }): string | null {
  return name === null ? null : `${name}${partsOf(uniqueId, name)?.version ?? ''}`;
}

/**
 * The model that a unit test is of, with its version: its id names it, as in `unit_test.PROJECT.MODEL.NAME` and
 * `unit_test.PROJECT.MODEL.NAME.VERSION`. `null` for other ids.
 */
export function testedModelOf(uniqueId: string, name: string): string | null {
  const parts = isUnitTestId(uniqueId) ? partsOf(uniqueId, name) : null;
  return parts === null || parts.model === '' ? null : `${parts.model}${parts.version}`;
}

/** Models and unit tests have versions; other ids end otherwise, those of tests with a hash. */
const VERSIONED = /^(?:model|unit_test)\./;

/** What stands before and after the name in an id, the version with its dot. */
function partsOf(uniqueId: string, name: string): { readonly model: string; readonly version: string } | null {
  if (!VERSIONED.test(uniqueId)) return null;
  const [, , ...rest] = uniqueId.split('.');
  const path = `.${rest.join('.')}`;
  if (path.endsWith(`.${name}`)) return { model: path.slice(1, -name.length - 1), version: '' };
  const at = path.lastIndexOf(`.${name}.v`);
  return at === -1 ? null : { model: path.slice(1, at), version: path.slice(at + name.length + 1) };
}
