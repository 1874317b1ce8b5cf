import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { openServer, type Server } from '../app.js';
import { bridgeHeaders, checkBaseUrl, type OtlpBody, postOtlp } from '../cli/bridge/bridge.js';
import { CliError, EXIT, type ExitCode, type Invocation, type ProcessContext, stopped } from '../cli/command.js';
import { resolveWithDestinations } from '../cli/command-configuration.js';
import { createLogger } from '../cli/logger.js';
import { type Clock, pause } from '../core/clock.js';
import type {
  AnyValue,
  ExportRequest,
  KeyValue,
  OtlpLogRecord,
  OtlpSpan,
  ResourceGroup,
} from '../otlp/export-request.js';
import { ProtobufCodec } from '../otlp/protobuf-codec.js';
import { invocationIdOf, parseTraceId, type TraceId, type UnixNano } from '../record/telemetry-record.js';
import { shortReport } from '../report/feature.js';
import { appDeps } from './app-deps.js';

const DRAIN_MS = 5_000;
const POLL_MS = 50;

/** What `run-bridge demo` does. @throws CliError, ConfigurationError, StoreError, ListenError */
export async function replayDemo(invocation: Invocation): Promise<ExitCode> {
  const { context, flags } = invocation;
  if (flags.to !== undefined) checkBaseUrl(flags.to);
  const traceId = newTraceId();
  const bodies = readBodies(context, traceId);
  if (flags.to === undefined) return await replayHere(invocation, traceId, bodies);
  await send(flags.to, bodies, context.clock, bridgeHeaders(context.environment, flags.to));
  context.stdout.write(`sent a run of dbt build to ${flags.to}, trace ${traceId}\n`);
  return EXIT.ok;
}

async function replayHere(invocation: Invocation, traceId: TraceId, bodies: readonly OtlpBody[]): Promise<ExitCode> {
  const { context, flags, switches } = invocation;
  const dataDir = flags['data-dir'] ?? mkdtempSync(join(context.tempDir, 'run-bridge-demo-'));
  const given = {
    http: '127.0.0.1:0',
    grpc: 'off',
    web: '127.0.0.1:0',
    'otlp-auth': 'auto',
    ...flags,
    'data-dir': dataDir,
  };
  const { configuration } = await resolveWithDestinations({ ...invocation, flags: given });
  const { clock, stdout, stderr, stop } = context;
  const logger = createLogger({ level: 'warn', format: 'auto', stream: stderr, isTerminal: context.isStderrTerminal });
  const server = await openServer({ ...configuration, jsonl: 'off' }, appDeps(context, logger));
  const { program, ports } = server;
  await program.start();
  try {
    await send(ports.otlpUrl, bodies, clock);
    while (!(await program.tracker.isSettled(traceId))) {
      if (stop.aborted) return EXIT.failed;
      await pause(clock, POLL_MS, stop);
    }
    for (const line of await describe(server, traceId)) stdout.write(`${line}\n`);
    if (switches.has('serve')) {
      for (const line of await pageLines(server, traceId)) stdout.write(`${line}\n`);
      await stopped(stop);
    }
  } finally {
    await program.shutdown(AbortSignal.timeout(DRAIN_MS));
  }
  for (const line of nextSteps(traceId, configuration['data-dir'], program.destinations)) stdout.write(`${line}\n`);
  return EXIT.ok;
}

/** The page of the run; where nobody else can reach it, by a link that signs in. */
async function pageLines(server: Server, traceId: TraceId): Promise<readonly string[]> {
  const { webUrl, signInUrl } = server.ports;
  const page = `/runs/by-trace/${traceId}`;
  const url = signInUrl !== null ? await server.makeSignInLink(page) : `${webUrl}${page}`;
  return ['', 'its page, until Ctrl+C:', `  ${url}`];
}

async function describe({ program, ports }: Server, traceId: TraceId): Promise<readonly string[]> {
  const run = await program.tracker.find(traceId);
  const report = run && (await shortReport(program.reader, run));
  if (report === undefined) throw new CliError(EXIT.failed, 'the run was sent, but it contains no command');
  return [`sent a recorded run of dbt 2 to ${ports.otlpUrl}: invocation ${invocationIdOf(traceId)}`, '', ...report];
}

function nextSteps(
  traceId: TraceId,
  dataDir: string,
  destinations: Server['program']['destinations'],
): readonly string[] {
  const folder = join(dataDir, 'runs', traceId);
  const exported = destinations.map(([name]) => name).join(', ');
  return [
    '',
    'written:',
    `  ${join(folder, 'telemetry.jsonl')}    every record, as the engine writes them`,
    `  ${join(folder, 'telemetry.parquet')}  the same as a table`,
    `  ${join(folder, 'run.json')}           the summary`,
    ...(exported === '' ? [] : [`exported to ${exported}`]),
    '',
    'next:',
    `  duckdb -c "select event_type, count(*) from '${join(folder, 'telemetry.parquet')}' group by all"`,
    `  run-bridge report ${traceId} --data-dir ${dataDir}`,
    '  run-bridge demo --serve opens its page; run-bridge serve, and then your own run: it says the command',
  ];
}

/** The recorded bodies in the order in which the engine sent them, as a run that ends now. */
function readBodies({ packageDir, clock }: ProcessContext, to: TraceId): readonly OtlpBody[] {
  const codec = new ProtobufCodec();
  const folder = join(packageDir, 'demo');
  const requests = readdirSync(folder)
    .sort()
    .map((name) => codec.decode(name.includes('traces') ? 'traces' : 'logs', readFileSync(join(folder, name))));
  const from = parseTraceId(
    requests.find(({ resources }) => resources.length > 0)?.resources[0]?.scopes[0]?.records[0]?.traceId ?? '',
  );
  if (from === undefined) throw new CliError(EXIT.failed, `${folder} contains no run; reinstall run-bridge`);
  const shiftNano = BigInt(clock.nowUnixMs()) * 1_000_000n - latestTime(requests);
  return requests.map((request) => ({
    signal: request.signal,
    bytes: codec.encode(rebaseRequest(request, { from, to, shiftNano })),
  }));
}

async function send(
  baseUrl: string,
  bodies: readonly OtlpBody[],
  clock: Clock,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  for (const body of bodies) {
    const waitMs = await postOtlp(baseUrl, body, clock, undefined, headers);
    if (waitMs !== null) throw new CliError(EXIT.failed, `${baseUrl} is overloaded; try again shortly`);
  }
}

function newTraceId(): TraceId {
  const traceId = parseTraceId(randomBytes(16).toString('hex'));
  return traceId ?? newTraceId();
}

/** How a recorded run gets ids and times of its own. */
export interface Rebase {
  readonly from: TraceId;
  readonly to: TraceId;
  /** Added to every time. */
  readonly shiftNano: UnixNano;
}

/** A recorded request as if its run happened at another time, under another trace and invocation id. */
export function rebaseRequest(request: ExportRequest, rebase: Rebase): ExportRequest {
  return request.signal === 'traces'
    ? { signal: 'traces', resources: mapRecords(request.resources, (span) => rebaseSpan(span, rebase)) }
    : { signal: 'logs', resources: mapRecords(request.resources, (log) => rebaseLog(log, rebase)) };
}

/** The latest time in some requests, in nanoseconds since the Unix epoch. */
export function latestTime(requests: readonly ExportRequest[]): UnixNano {
  let latest = 0n;
  for (const request of requests) {
    for (const time of timesOf(request)) if (time > latest) latest = time;
  }
  return latest;
}

function timesOf(request: ExportRequest): readonly UnixNano[] {
  return request.signal === 'traces'
    ? recordsOf(request.resources).map((span) => span.endTimeUnixNano)
    : recordsOf(request.resources).map((log) => log.timeUnixNano);
}

function recordsOf<T>(groups: readonly ResourceGroup<T>[]): readonly T[] {
  return groups.flatMap(({ scopes }) => scopes).flatMap(({ records }) => records);
}

function mapRecords<T>(groups: readonly ResourceGroup<T>[], map: (record: T) => T): readonly ResourceGroup<T>[] {
  return groups.map((group) => ({
    ...group,
    scopes: group.scopes.map((scope) => ({ ...scope, records: scope.records.map(map) })),
  }));
}

function rebaseSpan(span: OtlpSpan, rebase: Rebase): OtlpSpan {
  return {
    ...span,
    traceId: replaceId(span.traceId, rebase),
    name: replaceId(span.name, rebase),
    startTimeUnixNano: span.startTimeUnixNano + rebase.shiftNano,
    endTimeUnixNano: span.endTimeUnixNano + rebase.shiftNano,
    attributes: rebaseAttributes(span.attributes, rebase),
    events: span.events.map((event) => ({ ...event, timeUnixNano: event.timeUnixNano + rebase.shiftNano })),
    links: span.links.map((link) => ({ ...link, traceId: replaceId(link.traceId, rebase) })),
  };
}

function rebaseLog(log: OtlpLogRecord, rebase: Rebase): OtlpLogRecord {
  return {
    ...log,
    traceId: replaceId(log.traceId, rebase),
    timeUnixNano: log.timeUnixNano + rebase.shiftNano,
    observedTimeUnixNano: log.observedTimeUnixNano + rebase.shiftNano,
    attributes: rebaseAttributes(log.attributes, rebase),
  };
}

function rebaseAttributes(attributes: readonly KeyValue[], rebase: Rebase): readonly KeyValue[] {
  return attributes.map(({ key, value }) => ({ key, value: rebaseValue(value, rebase) }));
}

function rebaseValue(value: AnyValue, rebase: Rebase): AnyValue {
  return typeof value === 'string' ? replaceId(value, rebase) : value;
}

function replaceId(text: string, { from, to }: Rebase): string {
  return text.replaceAll(from, to).replaceAll(invocationIdOf(from), invocationIdOf(to));
}
