import type { NodeMeasure } from './node-measure.js';

// What is said of a node to people, in chats, mails and reports.

/** `model orders`, `unit test paid_revenue`, `source erp.orders`. */
export function labelOf({ uniqueId, nodeType, name }: Pick<NodeMeasure, 'uniqueId' | 'nodeType' | 'name'>): string {
  const [prefix = '', , ...rest] = uniqueId.split('.');
  const type = nodeType ?? prefix;
  // A test's own name is longer than its `name`: the id ends with a hash. A source has the name of its table alone.
  const own = type === 'source' || name === null ? rest.join('.') : name;
  return own === '' ? uniqueId : `${type.replaceAll('_', ' ')} ${own}`;
}

/** Follows skips to the node that was not skipped itself. */
export function causeOfSkip(node: NodeMeasure, skipped: ReadonlyMap<string, NodeMeasure>): string | null {
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
  /^Error executing materialization macro \S+ for [a-z_]+ \S+: /,
  /^Failed to eval the compiled Jinja expression /,
  /^Failed to render SQL /,
  /^invalid operation: /,
  /^unknown (?:function|filter|test|method): /,
  /^Compilation Error for \S+ from [^:]*: /,
  /^ERROR: /,
] as const;
/** Places in compiled code, codes, and marks below a column, which mean nothing in a proportional font. */
const NOISE = /^(?:\(in .*:\d+:\d+\)\.?(?: Treating as failing test\.)?|--> .*|\(SQLSTATE: \w+\)|[\^~\s]*)$/;
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
