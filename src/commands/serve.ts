import type { AppDeps } from '../app/app-deps.js';
import { openBuilder, openServer, type Server } from '../app.js';
import { EXIT, type ExitCode, type Invocation, stopped } from '../cli/command.js';
import { readExportConfiguration } from '../cli/command-configuration.js';
import { loggerOf } from '../cli/logger.js';
import type { Configuration } from '../config/configuration.js';
import { missingForHooks } from '../config/missing-for-hooks.js';
import { offDestinationOf } from '../config/otlp-destinations.js';
import { ENGINE_QUEUES } from '../config/otlp-environment.js';
import { pause } from '../core/clock.js';
import { heapGrowth } from '../core/guard.js';
import { reachableUrl } from '../core/http-listener.js';
import type { Logger } from '../core/logger.js';
import type { Signal } from '../record/record-batch.js';
import { appDeps } from './app-deps.js';

/** How long components have to finish what was accepted, in milliseconds; the whole process ends within 10 s. */
const DRAIN_MS = 7_000;
/** A component that does not heed the deadline is left behind after this time: what was accepted is on disk. */
const GIVE_UP_MS = 9_000;
/** With less memory the young generation of the heap stays small. */
const LARGE_MEMORY_BYTES = 512 * 2 ** 20;

/** What `run-bridge serve` does. @throws ConfigurationError, StoreError, DataFolderInUseError, OutputError, ListenError */
export async function serve(invocation: Invocation): Promise<ExitCode> {
  const { context } = invocation;
  const { clock } = context;
  const configuration = await readExportConfiguration(invocation);
  const logger = loggerOf(configuration, context);
  const deps = appDeps(context, logger);
  const { lines, shutdown: end } = await START[configuration.role](configuration, deps, context.isStderrTerminal);
  releaseMemory(configuration);
  for (const line of lines) context.stderr.write(`${line}\n`);
  await stopped(context.stop);
  logger.info({}, 'stopping; finishing accepted requests');
  const isEnded = new AbortController();
  const shutdown = end(AbortSignal.timeout(DRAIN_MS)).then(
    () => EXIT.ok,
    (error: unknown) => {
      logger.error({ error: String(error) }, 'not everything ended cleanly; the next start continues it');
      return EXIT.failed;
    },
  );
  const exitCode = await Promise.race([shutdown, pause(clock, GIVE_UP_MS, isEnded.signal)]);
  isEnded.abort();
  return exitCode ?? EXIT.ok;
}

/** A program that has started. */
interface Started {
  /** What it says at its start. */
  readonly lines: readonly string[];
  shutdown(deadline: AbortSignal): Promise<void>;
}

type Start = (configuration: Configuration, deps: AppDeps, isTerminal: boolean) => Promise<Started>;

const START: Readonly<Record<Configuration['role'], Start>> = { all: serveAll, web: serveAll, build, receive };

async function serveAll(configuration: Configuration, deps: AppDeps, isTerminal: boolean): Promise<Started> {
  const { logger } = deps;
  const server = await openServer(configuration, deps);
  const { program, ports } = server;
  await program.start();
  const lines = startLines({
    otlpUrl: ports.otlpUrl,
    grpcUrl: ports.grpcUrl,
    webUrl: ports.webUrl,
    firstTokenFile: await makeFirstToken(server, configuration['data-dir'], logger),
    signIn: await makeSignIn(server, isTerminal, logger),
    isTokenNeeded: ports.isTokenNeeded,
    handsOver: configuration.role === 'web' ? configuration.journal : null,
    ...factsOfRuns(configuration, program),
  });
  return {
    lines: [...lines, ...hookLines(configuration, ports.webUrl)],
    shutdown: (deadline) => program.shutdown(deadline),
  };
}

async function build(configuration: Configuration, deps: AppDeps): Promise<Started> {
  const { program, web } = await openBuilder(configuration, deps);
  await program.start();
  const { journal } = configuration;
  const facts = { webUrl: web.address.url, journal, ...factsOfRuns(configuration, program) };
  return { lines: buildingLines(facts), shutdown: (deadline) => program.shutdown(deadline) };
}

function factsOfRuns(configuration: Configuration, { destinations }: Pick<StartFacts, 'destinations'>) {
  const { parquet, processes, artifacts, 'data-dir': dataFolder } = configuration;
  const isShared = processes === 'several' && artifacts !== 'folder';
  return {
    runsFolder: isShared ? `s3://${artifacts.bucket}/${artifacts.prefix}runs` : `${dataFolder}/runs`,
    isParquetOn: parquet,
    jsonl: describeJsonl(configuration.jsonl),
    destinations,
    offDestination: offDestinationOf(configuration)?.name,
  };
}

async function receive(configuration: Configuration, deps: AppDeps): Promise<Started> {
  const { Receiving } = await import('../app/receiving.js');
  const receiving = await Receiving.open(configuration, deps);
  await receiving.start();
  return { lines: receivingLines(receiving.facts), shutdown: (deadline) => receiving.shutdown(deadline) };
}

function releaseMemory(configuration: Configuration): void {
  // A large one is faster, and would be a third of so little memory.
  if (configuration['max-memory'] >= LARGE_MEMORY_BYTES) heapGrowth.release();
  else heapGrowth.saveMemory();
}

/** The address for webhooks of the hosted platform, or why they are off; nothing if they are not configured. */
function hookLines(configuration: Configuration, webUrl: string): readonly string[] {
  if (configuration.platformSecrets.hookSecret === null) return [];
  const missing = missingForHooks(configuration);
  if (missing.length > 0) return [`run-bridge: webhooks of the hosted platform are off: set ${missing.join(' and ')}`];
  return [`webhooks  of ${configuration['platform-url']} at ${webUrl}/hooks/platform`];
}

/** A first start without a token still serves. */
async function makeFirstToken(server: Server, dataFolder: string, logger: Logger): Promise<string | null> {
  try {
    return await server.makeFirstToken(dataFolder);
  } catch (error) {
    logger.error(
      { reason: String(error) },
      'failed to create the first token; create one with run-bridge token create',
    );
    return null;
  }
}

/** Failing to make a link keeps nobody from serving, either. */
async function makeSignIn(server: Server, isTerminal: boolean, logger: Logger): Promise<SignInWay> {
  if (server.ports.signInUrl === null) return { kind: 'token' };
  // What is no terminal may be a log that is kept, and that others read.
  if (!isTerminal) return { kind: 'command' };
  try {
    return { kind: 'link', url: await server.makeSignInLink() };
  } catch (error) {
    logger.error({ reason: String(error) }, 'failed to make a link for signing in; make one with run-bridge open');
    return { kind: 'command' };
  }
}

function describeJsonl(jsonl: string): string | null {
  if (jsonl === 'off') return null;
  return jsonl === '-' ? 'standard output' : jsonl;
}

/** How people sign in to the pages. */
export type SignInWay =
  | { readonly kind: 'token' | 'command' }
  /** It has a secret. */
  | { readonly kind: 'link'; readonly url: string };

/** The output of `serve`. */
export interface StartFacts {
  readonly otlpUrl: string;
  /** Where OTLP is received over gRPC; `null` where it is not. */
  readonly grpcUrl: string | null;
  readonly webUrl: string;
  /** Where runs are kept. */
  readonly runsFolder: string;
  /** The topics that telemetry goes to, for others to build runs of it; `null` where this process builds them. */
  readonly handsOver: JournalFacts | null;
  /** The file with the token that this first start has made; `null` on later ones. Its secret stands in no log. */
  readonly firstTokenFile: string | null;
  readonly signIn: SignInWay;
  /** Whether OTLP over HTTP needs a token. */
  readonly isTokenNeeded: boolean;
  readonly isParquetOn: boolean;
  /** Where the records are streamed, in words; `null` where they are not. */
  readonly jsonl: string | null;
  /** Each destination: its name and where it is. */
  readonly destinations: readonly (readonly [name: string, where: string])[];
  /** The name of one that is configured and off; left out: none is. */
  readonly offDestination?: string | undefined;
}

/** Topics of Kafka, and where it is. */
interface JournalFacts {
  readonly brokers: readonly string[];
  readonly topics: Readonly<Record<Signal, string>>;
}

/** Where `exec` looks for a bridge by itself. */
const DEFAULT_URL = 'http://127.0.0.1:4318';

/** Six to nine lines: where it listens, where its first token is, where it writes, where it exports and what to run. */
export function startLines(facts: StartFacts): readonly string[] {
  const url = reachableUrl(facts.otlpUrl);
  // Elsewhere than at the default address a command is told where the bridge is, and who sends.
  const isFound = !facts.isTokenNeeded && url === DEFAULT_URL;
  const exec = isFound
    ? 'run-bridge exec'
    : `${facts.isTokenNeeded ? 'RUN_BRIDGE_TOKEN=$TOKEN ' : ''}run-bridge exec --to ${url}`;
  return [
    ...addressLines(facts),
    `pages     ${reachableUrl(facts.webUrl)} (${signInHint(facts.signIn)}; health is at ${facts.webUrl}/readyz)`,
    ...(facts.signIn.kind === 'link'
      ? [`sign in   ${facts.signIn.url} (once, within ten minutes; later: run-bridge open)`]
      : []),
    ...(facts.firstTokenFile === null
      ? []
      : [`token     one for everything is in ${facts.firstTokenFile}; others: run-bridge token create --help`]),
    ...(facts.handsOver === null
      ? runLines(facts)
      : [`writes    ${topicsOf(facts.handsOver)}; processes with --role build make runs of it`]),
    `now run   ${exec} -- dbt build`,
    `or        ${engineLine(facts)}`,
  ];
}

/** The output of `serve --role receive`. */
export function receivingLines(
  facts: Pick<StartFacts, 'otlpUrl' | 'grpcUrl' | 'webUrl' | 'isTokenNeeded'> & JournalFacts,
): readonly string[] {
  return [...addressLines(facts), healthLine(facts), `writes    ${topicsOf(facts)}`, `now run   ${engineLine(facts)}`];
}

/** The output of `serve --role build`. */
export function buildingLines(
  facts: RunFacts & Pick<StartFacts, 'webUrl'> & { readonly journal: JournalFacts | null },
): readonly string[] {
  const { journal } = facts;
  return [
    ...(journal === null ? [] : [`builds    runs of ${topicsOf(journal)}`]),
    healthLine(facts),
    ...runLines(facts),
  ];
}

type RunFacts = Pick<StartFacts, 'runsFolder' | 'isParquetOn' | 'jsonl' | 'destinations' | 'offDestination'>;

/** What becomes of runs. */
function runLines({ runsFolder, isParquetOn, jsonl, destinations, offDestination }: RunFacts): readonly string[] {
  const formats = ['JSONL', ...(isParquetOn ? ['Parquet'] : [])].join(' and ');
  const streamed = jsonl === null ? '' : `, streamed to ${jsonl}`;
  const off = offDestination === undefined ? [] : [`${offDestination} is off (see /readyz?verbose)`];
  const exported = [...destinations.map(([name, where]) => `${name} (${where})`), ...off].join(', ');
  return [
    `writes    ${runsFolder} (${formats}${streamed})`,
    `exports   ${exported || 'nothing; set OTEL_EXPORTER_OTLP_ENDPOINT, or destinations in run-bridge.yaml, to change that'}`,
  ];
}

function healthLine({ webUrl }: Pick<StartFacts, 'webUrl'>): string {
  return `health    ${webUrl}/readyz (figures are at ${webUrl}/metrics)`;
}

function topicsOf({ brokers, topics }: JournalFacts): string {
  return `topics ${topics.traces} and ${topics.logs} of Kafka at ${brokers.join(', ')}`;
}

function addressLines({ otlpUrl, grpcUrl }: Pick<StartFacts, 'otlpUrl' | 'grpcUrl'>): readonly string[] {
  const grpc = grpcUrl === null ? [] : [`          OTLP over gRPC at ${grpcUrl}`];
  return [`receives  OTLP over HTTP at ${otlpUrl}`, ...grpc];
}

/** How the engine itself sends here. */
function engineLine({ otlpUrl, isTokenNeeded }: Pick<StartFacts, 'otlpUrl' | 'isTokenNeeded'>): string {
  const token = isTokenNeeded ? 'OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer $TOKEN" ' : '';
  const queues = Object.entries(ENGINE_QUEUES)
    .map((entry) => entry.join('='))
    .join(' ');
  return `OTEL_EXPORTER_OTLP_ENDPOINT=${reachableUrl(otlpUrl)} ${token}${queues} dbt build --export-to-otlp`;
}

function signInHint(way: SignInWay): string {
  switch (way.kind) {
    case 'token':
      return 'sign in with a token';
    case 'command':
      return 'run-bridge open signs in';
    case 'link':
      return 'sign in with the link below, or a token';
  }
}
