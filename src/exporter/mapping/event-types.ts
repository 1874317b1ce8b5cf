/** Full names of the messages that the mapping treats in a way of their own. */
export const EVENT_TYPE = {
  invocation: 'v1.public.events.fusion.invocation.Invocation',
  process: 'v1.public.events.fusion.process.Process',
  nodeProcessed: 'v1.public.events.fusion.node.NodeProcessed',
  nodeEvaluated: 'v1.public.events.fusion.node.NodeEvaluated',
  microbatchEvaluated: 'v1.public.events.fusion.node.MicrobatchEvaluated',
  hookProcessed: 'v1.public.events.fusion.hook.HookProcessed',
  queryExecuted: 'v1.public.events.fusion.query.QueryExecuted',
} as const;

/** The last part of a message's full name, for example `LogMessage`; `log` for none. */
export function shortEventType(eventType: string): string {
  const short = eventType.slice(eventType.lastIndexOf('.') + 1);
  return short === '' ? 'log' : short;
}

/**
 * A span's name without what changes from run to run: ids, counts, versions, places in the engine's source. One series
 * in span metrics is then one thing, whatever run it comes from.
 * @param command the invocation's command, for example `build`, where it is known.
 */
export function stableSpanName(name: string, eventType: string, command: string | undefined): string {
  if (eventType === EVENT_TYPE.invocation) {
    const stable = name.replace(/ \([^)]*\)$/, '');
    return command === undefined ? stable : `${stable} (${command})`;
  }
  const rule = RULES.get(eventType);
  if (rule !== undefined) return name.replace(rule[0], rule[1]);
  return KNOWN_STABLE.has(eventType) ? name : name.replace(UUID, '*').replace(COUNTS, '');
}

const V1 = 'v1.public.events.fusion.';
const RULES: ReadonlyMap<string, readonly [RegExp, string]> = new Map([
  [`${V1}phase.PhaseExecuted`, [/ \(nodes: \d+\)$/, '']],
  [`${V1}generic.GenericOpExecuted`, [/ \(\d+ items?\)$/, '']],
  [`${V1}deps.DepsAllPackagesInstalled`, [/^Installing \d+ package(?:s|\(s\))?$/, 'Installing packages']],
  [`${V1}query.ConnectionLimitWait`, [/(?: \(\d+ active \w+\))+$/, '']],
  [`${V1}update.PackageUpdate`, [/ -> .*$/, '']],
  [`${V1}dev.CallTrace`, [/ \([^()]*:\d+\)$/, '']],
  [`${V1}dev.Unknown`, [/ \([^()]*:\d+\)$/, '']],
]);

/** Events whose names hold nothing but names of the project's things. */
const KNOWN_STABLE: ReadonlySet<string> = new Set([
  EVENT_TYPE.nodeProcessed,
  EVENT_TYPE.nodeEvaluated,
  EVENT_TYPE.queryExecuted,
  EVENT_TYPE.hookProcessed,
  EVENT_TYPE.process,
  `${V1}asset.AssetParsed`,
  `${V1}artifact.ArtifactWritten`,
  `${V1}generic.GenericOpItemProcessed`,
  `${V1}deps.DepsAddPackage`,
  `${V1}deps.DepsPackageInstalled`,
  `${V1}onboarding.OnboardingScreenShown`,
]);

/** Whether the names of such spans hold nothing that changes from run to run, or might be a value. */
export function isStableName(eventType: string): boolean {
  return KNOWN_STABLE.has(eventType);
}

/** Whether a span's name holds only names, counts and ids, so that redaction may show it. */
export function isStructuralName(eventType: string): boolean {
  return KNOWN_STABLE.has(eventType) || RULES.has(eventType) || eventType === EVENT_TYPE.invocation;
}

const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/gi;
const COUNTS = / \([^()]*\b\d+\b[^()]*\)$/;
