import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { connect } from 'node:net';
import { dirname, join, resolve } from 'node:path';
import { type Environment, nonEmpty } from '../config/environment.js';
import { ENGINE_QUEUES } from '../config/otlp-environment.js';
import type { TailPosition } from '../files/feature.js';
import { STEP_ATTRIBUTE } from '../record/attributes.js';
import { invocationIdOf, parseSpanId, parseTraceId, type SpanId, type TraceId } from '../record/telemetry-record.js';
import { isEngineProgram } from '../run/measures/execution.js';
import { vcsAttributes } from './vcs-attributes.js';

/** What a command line and its environment tell the engine about its files and its telemetry; a flag comes before a variable. */
export interface EngineSwitches {
  /** Name of the JSONL file that the user asked for; `undefined` where nobody did. */
  readonly fileName: string | undefined;
  readonly logPath: string | undefined;
  readonly projectDir: string | undefined;
  /** Where it writes what it makes; `undefined` where the project says it, or nobody. */
  readonly targetPath: string | undefined;
  /** Whether the user chose the trace id or the parent span. */
  readonly hasOwnTrace: boolean;
}

/** Whether a command may run the engine several times, as far as its first word tells. */
export function mayRunSeveral([program = '']: readonly string[]): boolean {
  return !isEngineProgram(program);
}

/** Reads the engine's switches off a command, as far as they stand in it: those inside a script cannot be seen. */
export function readEngineSwitches(command: readonly string[], environment: Environment): EngineSwitches {
  const value = (flag: string, variable: string) => flagValue(command, flag) ?? nonEmpty(environment[variable]);
  return {
    fileName: value('--otel-file-name', 'DBT_OTEL_FILE_NAME'),
    logPath: value('--log-path', 'DBT_LOG_PATH'),
    projectDir: value('--project-dir', 'DBT_PROJECT_DIR'),
    targetPath: value('--target-path', 'DBT_TARGET_PATH'),
    hasOwnTrace:
      (value('--invocation-id', 'DBT_INVOCATION_ID') ?? value('--parent-span-id', 'DBT_PARENT_SPAN_ID')) !== undefined,
  };
}

function flagValue(command: readonly string[], flag: string): string | undefined {
  const at = command.findLastIndex((word) => word === flag || word.startsWith(`${flag}=`));
  const word = command[at];
  if (word === undefined) return undefined;
  return word === flag ? command[at + 1] : word.slice(flag.length + 1);
}

/** A project's own file, by which its folder is known. */
export const PROJECT_FILE = 'dbt_project.yml';

/**
 * The folder of the engine's project: the one in its arguments, else the working folder or the nearest one above it that is
 * a project; `undefined` where none is.
 */
export function findProjectFolder({ projectDir }: EngineSwitches, workingDir: string): string | undefined {
  if (projectDir !== undefined) return resolve(workingDir, projectDir);
  for (let folder = workingDir; ; folder = dirname(folder)) {
    if (existsSync(join(folder, PROJECT_FILE))) return folder;
    if (dirname(folder) === folder) return undefined;
  }
}

/** The JSONL file of a command that the engine writes. */
export interface EngineFile {
  readonly path: string;
  /** Its end before the command began: the engine appends. `undefined` for its beginning. */
  readonly from: TailPosition | undefined;
  /** Whether it is the user's own, which other commands write to as well. */
  readonly isShared: boolean;
}

/**
 * Where the engine writes the file that the user asked for: `<log path>/NAME`, the log path being `logs` in the project
 * folder unless its arguments name one. `undefined` where the user asked for none.
 */
export function findUserFile(switches: EngineSwitches, workingDir: string): string | undefined {
  const { fileName, logPath = 'logs' } = switches;
  if (fileName === undefined) return undefined;
  const project = findProjectFolder(switches, workingDir) ?? workingDir;
  return resolve(project, logPath, fileName);
}

/** The user's own file of the engine, from its end on. */
export async function readUserFile(path: string | undefined): Promise<EngineFile | undefined> {
  if (path === undefined) return undefined;
  const { endPosition } = await import('../files/feature.js');
  return { path, from: endPosition(path), isShared: true };
}

/** The caller's span, as `TRACEPARENT` names it. @param say is told what is wrong with it */
export function callersTrace(environment: Environment, say: (message: string) => void): TraceContext | null {
  const text = nonEmpty(environment.TRACEPARENT);
  if (text === undefined) return null;
  const parent = parseTraceparent(text);
  if (parent === undefined) say(`TRACEPARENT is ${JSON.stringify(text)}, which is no W3C trace context; it is ignored`);
  return parent ?? null;
}

/** What a command is wired to. */
export interface Wiring {
  /** Where this process receives OTLP, for example `http://127.0.0.1:40123`. */
  readonly otlpUrl: string;
  /** The private file for the engine's JSONL; `null` where the user's own is followed, or there is none. */
  readonly jsonlPath: string | null;
  readonly stepId: string;
  /** The span that the engine's roots are to be below; `null` where they are to be roots, or the user has said it. */
  readonly parent: TraceContext | null;
  /** Whether the parent is a span of this program's own, so that `TRACEPARENT` must name it. */
  readonly isParentOwn: boolean;
}

const LOOPBACK = ['127.0.0.1', 'localhost'];

/**
 * The environment of a wrapped command: the user's, with the engine's telemetry led to this process. What the user has set
 * stays, but for where traces and logs go: that becomes a destination of the bridge. Metrics go where they went.
 */
export function childEnvironment(user: Environment, wiring: Wiring): Environment {
  return {
    ...withDefaults(user, { DBT_EXPORT_TO_OTLP: 'true', ...ENGINE_QUEUES }),
    ...endpoints(user, wiring.otlpUrl),
    ...noProxy(user),
    ...(wiring.jsonlPath === null ? {} : { DBT_OTEL_FILE_NAME: wiring.jsonlPath }),
    OTEL_RESOURCE_ATTRIBUTES: resourceAttributes(user, wiring.stepId),
    ...traceVariables(wiring),
    [EXEC_VARIABLE]: wiring.otlpUrl,
  };
}

function withDefaults(user: Environment, defaults: Environment): Environment {
  const missing = Object.entries(defaults).filter(([name]) => nonEmpty(user[name]) === undefined);
  return { ...user, ...Object.fromEntries(missing) };
}

function endpoints(user: Environment, otlpUrl: string): Environment {
  const general = nonEmpty(user.OTEL_EXPORTER_OTLP_ENDPOINT);
  const metrics = general === undefined ? undefined : `${general.replace(/\/+$/, '')}/v1/metrics`;
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: undefined,
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: undefined,
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: nonEmpty(user.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT) ?? metrics,
  };
}

/** The engine heeds HTTP_PROXY even for 127.0.0.1. Programs read either spelling, so both have to say the same. */
function noProxy(user: Environment): Environment {
  const spellings = [nonEmpty(user.NO_PROXY), nonEmpty(user.no_proxy)];
  const extend = (text: string) => {
    const hosts = text.split(',').map((host) => host.trim());
    return [text, ...LOOPBACK.filter((host) => !hosts.includes(host) && !hosts.includes('*'))].join(',');
  };
  const [upper = spellings[1], lower = spellings[0]] = spellings;
  const none = LOOPBACK.join(',');
  return {
    NO_PROXY: upper === undefined ? none : extend(upper),
    no_proxy: lower === undefined ? none : extend(lower),
  };
}

/** The user's, the code that a CI system runs, and the step, which has to be the last one. */
function resourceAttributes(user: Environment, stepId: string): string {
  const pairs = (user.OTEL_RESOURCE_ATTRIBUTES ?? '')
    .split(',')
    .filter((pair) => pair.trim() !== '' && !isStepId(pair));
  const names = new Set(pairs.map((pair) => pair.split('=', 1)[0]?.trim()));
  const vcs = Object.entries(vcsAttributes(user)).filter(([name]) => !names.has(name));
  return [...pairs, ...vcs.map(([name, value]) => `${name}=${value}`), `${STEP_ATTRIBUTE}=${stepId}`].join(',');
}

/** Of a command that was wrapped inside this one's caller. */
function isStepId(pair: string): boolean {
  return pair.trim().startsWith(`${STEP_ATTRIBUTE}=`);
}

function traceVariables({ parent, isParentOwn }: Wiring): Environment {
  if (parent === null) return {};
  return {
    DBT_INVOCATION_ID: invocationIdOf(parent.traceId),
    DBT_PARENT_SPAN_ID: parent.parentSpanId,
    ...(isParentOwn ? { TRACEPARENT: formatTraceparent(parent) } : {}),
  };
}

/** Tells a command, and an `exec` inside it, that its telemetry is taken care of: the URL it is to send to. */
export const EXEC_VARIABLE = 'RUN_BRIDGE_EXEC';
/** How long the other `exec` may take to take a connection, in milliseconds; it is on the same machine. */
const CONNECT_MS = 500;

/**
 * Whether another `exec` is at work around this one, and takes its command's telemetry: one that has died, or whose wiring
 * was undone in between, does not.
 */
export function isWrapped(environment: Environment): Promise<boolean> {
  const url = nonEmpty(environment[EXEC_VARIABLE]);
  if (url === undefined || url !== environment.OTEL_EXPORTER_OTLP_ENDPOINT || !URL.canParse(url)) {
    return Promise.resolve(false);
  }
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.setTimeout(CONNECT_MS, () => settle(false));
    socket.once('connect', () => settle(true));
    socket.once('error', () => settle(false));
  });
}

/** The span that a caller is in, as `TRACEPARENT` names it. */
export interface TraceContext {
  readonly traceId: TraceId;
  readonly parentSpanId: SpanId;
  /** Two hexadecimal digits; bit 0 says that the caller keeps the trace. */
  readonly flags: string;
}

const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;

/**
 * Reads a `traceparent` as W3C Trace Context has it (https://www.w3.org/TR/trace-context/#traceparent-header): version 00
 * has four fields, later ones may have more, ff is none; ids are lower case and not all zero. `undefined` when it is none.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, version, trace = '', parent = '', flags = '', rest] = TRACEPARENT.exec(text.trim()) ?? [];
  if (version === undefined || version === 'ff' || (version === '00' && rest !== undefined)) return undefined;
  const traceId = parseTraceId(trace);
  const parentSpanId = parseSpanId(parent);
  return traceId === undefined || parentSpanId === undefined ? undefined : { traceId, parentSpanId, flags };
}

/** The `traceparent` of a context. */
export function formatTraceparent({ traceId, parentSpanId, flags }: TraceContext): string {
  return `00-${traceId}-${parentSpanId}-${flags}`;
}

/** Where a wrapped command stands in a trace. */
export interface TracePosition {
  /** What the engine's roots are below; `null` where they are roots. */
  readonly parent: TraceContext | null;
  /** The command's own span, where there is to be one. */
  readonly span: { readonly traceId: TraceId; readonly spanId: SpanId; readonly parentSpanId: SpanId | null } | null;
}

/**
 * Below the caller's span, and, where the command is to have a span, below that one, in the caller's trace or a new one.
 * @param caller `null` where the caller names no trace
 */
export function tracePosition(caller: TraceContext | null, isSpanWanted: boolean): TracePosition {
  if (!isSpanWanted) return { parent: caller, span: null };
  const traceId = caller?.traceId ?? newTraceId();
  const spanId = newSpanId();
  return {
    parent: { traceId, parentSpanId: spanId, flags: caller?.flags ?? '01' },
    span: { traceId, spanId, parentSpanId: caller?.parentSpanId ?? null },
  };
}

function newTraceId(): TraceId {
  return parseTraceId(randomBytes(16).toString('hex')) ?? newTraceId();
}

function newSpanId(): SpanId {
  return parseSpanId(randomBytes(8).toString('hex')) ?? newSpanId();
}
