import { copyFileSync, existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Router } from 'express';
import { LiveRuns } from '../../src/api/live-runs.js';
import { RunMeasures } from '../../src/api/run-measures.js';
import { type ApiRoutersDeps, apiRouters } from '../../src/app/api-routers.js';
import { ARTIFACT_PATHS } from '../../src/artifact/openapi.js';
import type { Feature } from '../../src/feature.js';
import { RecordLogFiles } from '../../src/log/record-log-files.js';
import { createPlatformApi } from '../../src/platform/feature.js';
import { createQueries } from '../../src/query/feature.js';
import type { TraceId } from '../../src/record/telemetry-record.js';
import type { RetentionParts } from '../../src/retention/feature.js';
import { InvocationNotes } from '../../src/run/invocation-notes.js';
import { parseRun } from '../../src/run/parse-run.js';
import type { RunFinder } from '../../src/run/run-event.js';
import { ScopeFinder } from '../../src/run/scope-finder.js';
import type { RunSummary } from '../../src/run/verdict.js';
import type { State } from '../../src/storage/state.js';
import { ApiServer } from './api-server.js';
import { idleJobs } from './idle-jobs.js';
import { idleRetention } from './idle-retention.js';
import { queryFolder } from './query-folder.js';
import { sampleFolder } from './sample-run.js';
import { webhookParts } from './webhook-parts.js';

/** A port that answers the API as the program mounts it, over the runs of samples. */
export interface OwnApi {
  readonly server: ApiServer;
  readonly routers: readonly Router[];
  readonly dataFolder: string;
  /** Mounted before the API; empty. */
  readonly others: Router;
  readonly traceIds: readonly TraceId[];
  readonly queries: Feature;
  readonly jobs: ReturnType<typeof idleJobs>;
  readonly retention: RetentionParts;
  /** What measures are read with. */
  readonly measuring: Pick<ApiRoutersDeps, 'reader' | 'stopping'> & {
    readonly measures: RunMeasures;
    readonly live: LiveRuns;
    readonly notes: InvocationNotes;
    readonly tracker: RunFinder;
  } & Pick<State, 'catalog'>;
  /** Notes what is known of a sample's commands now. */
  note(traceId: TraceId, isOver: boolean): Promise<void>;
  close(): Promise<void>;
}

/** @param samples one run each, the first has the number 1001; the last of them is under way where `isLastOpen` */
export async function openOwnApi(samples: readonly string[], isLastOpen = false): Promise<OwnApi> {
  const removals: (() => void)[] = [];
  const { dataFolder, traceIds } = queryFolder(samples, (remove) => removals.push(remove));
  for (const [index, sample] of samples.entries()) {
    copyFileSync(
      join(sampleFolder(sample), 'otel.jsonl'),
      join(dataFolder, 'runs', traceIds[index] ?? '', 'telemetry.jsonl'),
    );
  }
  const summaryOf = (traceId: TraceId): RunSummary | undefined => {
    const path = join(dataFolder, 'runs', traceId, 'run.json');
    return existsSync(path) ? parseRun(readFileSync(path, 'utf8')) : undefined;
  };
  const mounted = Router();
  const others = Router();
  const server = await ApiServer.open(
    () => [mounted],
    false,
    () => [others],
  );
  const stopping = new AbortController();
  const reader = new RecordLogFiles(dataFolder, () => {});
  const tracker = { find: async (traceId: TraceId) => summaryOf(traceId) };
  const places = new ScopeFinder({ jobs: [], environments: [], projects: [] });
  const { clock, logger } = server;
  const measures = new RunMeasures({ store: server.state.measures, tracker, reader, logger });
  const notes = new InvocationNotes({ store: server.state.invocations, files: null, scopes: places, clock, logger });
  const live = new LiveRuns({ catalog: server.state.catalog, measures, reader });
  const jobs = idleJobs(server.state, clock, [], { measures, live });
  const platform = createPlatformApi(
    { redaction: 'literals', 'public-url': 'off' },
    { state: server.state, reader, jobs, clock },
  );
  const queries = createQueries(
    { 'data-dir': dataFolder },
    { state: server.state, shared: undefined, clock: server.clock, stopping: stopping.signal, version: '0.0.0' },
  );
  const retention = idleRetention(server.state, clock, dataFolder);
  const routers = await apiRouters({
    state: server.state,
    notes,
    reader,
    measures,
    features: [
      platform,
      jobs,
      webhookParts(server.state, server.clock),
      queries,
      retention,
      { apiPaths: async () => ARTIFACT_PATHS },
    ],
    redaction: 'literals',
    clock: server.clock,
    stopping: stopping.signal,
    version: '0.0.0',
  });
  for (const router of routers) mounted.use(router);
  const note = async (traceId: TraceId, isOver: boolean) => {
    const invocations = (summaryOf(traceId)?.invocations ?? []).map((invocation) => ({
      index: invocation.index,
      accountId: null,
      stepId: null,
      namedStepId: null,
      command: invocation.rawCommand,
      verdict: isOver ? invocation.verdict : null,
      statusMessage: isOver ? invocation.statusMessage : null,
      startedUnixMs: Number(invocation.startTimeUnixNano / 1_000_000n),
      endedUnixMs: Number(invocation.endTimeUnixNano / 1_000_000n),
      isSaved: isOver,
      parquetFile: invocation.parquetFile,
      engineVersion: '2.0.0',
      gitBranch: null,
      gitSha: null,
      scope: { job: 'nightly', environment: null, project: null },
    }));
    await server.state.invocations.note([{ traceId, invocations }], 1_800_000_000_000);
  };
  for (const [index, traceId] of traceIds.entries()) await note(traceId, !isLastOpen || index < traceIds.length - 1);
  const close = async () => {
    stopping.abort();
    await server.close();
    for (const remove of removals) remove();
  };
  const measuring = {
    notes,
    reader,
    tracker,
    measures,
    live,
    catalog: server.state.catalog,
    stopping: stopping.signal,
  };
  return { server, routers, dataFolder, others, traceIds, queries, jobs, retention, measuring, note, close };
}
