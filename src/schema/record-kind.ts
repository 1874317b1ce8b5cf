import { EVENT_TYPE_PREFIX } from './public-schema.js';

/** What the engine makes of a message: a span (SpanStart and SpanEnd), or a log record. */
export type RecordKind = 'span' | 'log';

const SPANS = [
  'artifact.ArtifactWritten',
  'asset.AssetParsed',
  'deps.DepsAddPackage',
  'deps.DepsAllPackagesInstalled',
  'deps.DepsPackageInstalled',
  'dev.CallTrace',
  'dev.Unknown',
  'generic.GenericOpExecuted',
  'generic.GenericOpItemProcessed',
  'hook.HookProcessed',
  'invocation.Invocation',
  'node.MicrobatchEvaluated',
  'node.NodeEvaluated',
  'node.NodeProcessed',
  'onboarding.OnboardingScreenShown',
  'phase.PhaseExecuted',
  'process.Process',
  'process.ThreadPoolWait',
  'query.ConnectionLimitWait',
  'query.QueryExecuted',
  'update.PackageUpdate',
];

const LOGS = [
  'log.CompiledCode',
  'log.CompiledCodeInline',
  'log.ListItemOutput',
  'log.LogMessage',
  'log.ProgressMessage',
  'log.ShowDataOutput',
  'log.ShowResult',
  'log.StateModifiedDiff',
  'log.UserLogMessage',
  'query.AdapterConnectionClose',
  'query.AdapterConnectionOpen',
];

/**
 * The kind of record of every public message that is an event, by full name; the others are parts of events. The
 * schema does not say it: it is what the engine's public code does, and what its output shows.
 */
export const RECORD_KINDS: ReadonlyMap<string, RecordKind> = new Map<string, RecordKind>([
  ...SPANS.map((name) => [EVENT_TYPE_PREFIX + name, 'span'] as const),
  ...LOGS.map((name) => [EVENT_TYPE_PREFIX + name, 'log'] as const),
]);
