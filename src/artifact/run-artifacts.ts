import { join } from 'node:path';
import { closeOnFailure } from '../core/errors.js';
import type { TraceId } from '../record/telemetry-record.js';
import {
  type Artifact,
  ArtifactError,
  type ArtifactFolder,
  type ArtifactKey,
  type ArtifactPath,
  type ArtifactStore,
  type ByteRange,
  describeFile,
  type OpenArtifact,
  openRegularFile,
  readFileOf,
  stepTelemetryOf,
  TELEMETRY_FOLDER,
  telemetryPaths,
} from '../storage/artifacts.js';
import type { CatalogInvocation, CatalogStep, RunCatalog } from '../storage/run-catalog.js';
import { RUN_STATUS } from '../storage/state-tables.js';

/** What is needed to find artifacts of runs. */
export interface RunArtifactsDeps {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'stepsOf' | 'latestRunsOf' | 'listRuns'>;
  /** Opens the store; called for each request. */
  readonly openStore: () => Promise<ArtifactStore>;
  /** The data folder; Parquet files are in its `runs/<trace id>/`. */
  readonly dataFolder: string;
  /** Finds Parquet files that are not in the data folder. */
  readonly telemetry?: TelemetryFiles;
}

/** The runs of which the newest one with an artifact is taken. */
export interface JobRuns {
  readonly jobName: string;
  /** Only those of this project, or environment; all where left out. */
  readonly projectName?: string | undefined;
  readonly environmentName?: string | undefined;
  /** Whether only runs that ended with success count. */
  readonly isGood: boolean;
}

/** The most runs of a job in which an artifact is looked for. */
const MAX_RUNS = 50;

/** Says in half a sentence that `ofJob` found nothing. */
export function noArtifactOf({ jobName, projectName, environmentName, isGood }: JobRuns, path: string): string {
  const scopes = Object.entries({ project: projectName, environment: environmentName });
  const named = scopes.flatMap(([kind, name]) => (name === undefined ? [] : ` in ${kind} ${JSON.stringify(name)}`));
  const runs = `none of the last ${MAX_RUNS} runs of job ${JSON.stringify(jobName)}${named.join('')}`;
  return `${runs} that ended${isGood ? ' with success' : ''} has the artifact ${path}`;
}

/**
 * The downloads of steps: the stored artifacts, and the Parquet files of their telemetry as
 * `metadata/telemetry-{step}-otel.parquet`. Further engine commands of a step are
 * `metadata/telemetry-{step}-otel-2.parquet` and so on, in the order in which they started.
 */
export class RunArtifacts {
  constructor(private readonly deps: RunArtifactsDeps) {}

  /** Returns the steps of an account's run in order; `undefined` if the run does not exist. @throws StoreError */
  async stepsOf(accountId: number, runId: number): Promise<readonly CatalogStep[] | undefined> {
    const { catalog } = this.deps;
    if ((await catalog.findRun(accountId, runId)) === undefined) return undefined;
    return catalog.stepsOf(accountId, [runId]);
  }

  /** Returns the latest run of an account's job that has ended; `undefined` if there is none. @throws StoreError */
  async latestRunOf(accountId: number, jobId: number): Promise<number | undefined> {
    return (await this.deps.catalog.latestRunsOf(accountId, [jobId])).get(jobId)?.completed ?? undefined;
  }

  /**
   * Finds an artifact of a job: that of the newest run that has ended and has it, in the last of its steps that has it. The last 50
   * runs are looked at.
   * @throws StoreError, ArtifactError
   */
  async ofJob(
    accountId: number,
    { isGood, ...scope }: JobRuns,
    path: ArtifactPath,
  ): Promise<{ readonly step: CatalogStep; readonly artifact: Artifact } | undefined> {
    const { catalog } = this.deps;
    const { success, error, cancelled } = RUN_STATUS;
    const { items } = await catalog.listRuns(accountId, {
      ...{ ...scope, statuses: isGood ? [success] : [success, error, cancelled] },
      ...{ orderBy: 'created', isDescending: true, limit: MAX_RUNS, offset: 0 },
    });
    for (const { id } of items) {
      for (const step of (await catalog.stepsOf(accountId, [id])).toReversed()) {
        const artifact = await this.stat(step, path);
        if (artifact !== undefined) return { step, artifact };
      }
    }
    return undefined;
  }

  /** Returns the sorted paths of all downloads of a step. @throws ArtifactError */
  async list(step: CatalogStep): Promise<readonly ArtifactPath[]> {
    const store = await this.deps.openStore();
    const kept = (await store.list(step.runId, step.index)).map(({ path }) => path);
    return [...kept, ...telemetryPaths(step)].sort();
  }

  /** Returns the downloads of a step with their sizes, without telemetry whose file is missing. @throws ArtifactError */
  async files(step: CatalogStep): Promise<readonly Artifact[]> {
    const store = await this.deps.openStore();
    return sorted([...(await store.list(step.runId, step.index)), ...(await this.telemetryOf(step))]);
  }

  /** Returns a folder of a step's downloads. @param folder empty for that of the step @throws ArtifactError */
  async listFolder(step: CatalogStep, folder: ArtifactPath | ''): Promise<ArtifactFolder> {
    const { folders, files } = await (await this.deps.openStore()).listFolder(step.runId, step.index, folder);
    if (folder === TELEMETRY_FOLDER) return { folders, files: sorted([...files, ...(await this.telemetryOf(step))]) };
    const isAdded = folder === '' && telemetryPaths(step).length > 0;
    return { folders: isAdded ? [...new Set([...folders, TELEMETRY_FOLDER])].sort() : folders, files };
  }

  /** Returns the size and etag of a download; `undefined` if it does not exist. @throws ArtifactError */
  async stat(step: CatalogStep, path: ArtifactPath): Promise<Artifact | undefined> {
    const invocation = invocationOf(step, path);
    if (invocation === undefined) return (await this.deps.openStore()).stat(keyOf(step, path));
    const found = await this.openTelemetry(invocation);
    if (found === undefined) return undefined;
    try {
      return { ...(await describeFile(found.handle, path)), ...found.tag };
    } finally {
      await found.handle.close();
    }
  }

  /** Opens a download or a part of it; `undefined` if it does not exist. @throws ArtifactError */
  async open(step: CatalogStep, path: ArtifactPath, range?: ByteRange): Promise<OpenArtifact | undefined> {
    const invocation = invocationOf(step, path);
    if (invocation === undefined) return (await this.deps.openStore()).open(keyOf(step, path), range);
    const found = await this.openTelemetry(invocation);
    if (found === undefined) return undefined;
    const { handle, tag } = found;
    const artifact = { ...(await closeOnFailure(handle, () => describeFile(handle, path))), ...tag };
    return { artifact, content: readFileOf(handle, range) };
  }

  private async telemetryOf(step: CatalogStep): Promise<readonly Artifact[]> {
    const found = await Promise.all(telemetryPaths(step).map((path) => this.stat(step, path)));
    return found.filter((file) => file !== undefined);
  }

  private async openTelemetry({ traceId, parquetFile, isSaved }: CatalogInvocation) {
    if (!isSaved) return undefined;
    const { telemetry, dataFolder } = this.deps;
    try {
      const found =
        telemetry === undefined
          ? { path: join(dataFolder, 'runs', traceId, parquetFile) }
          : await telemetry.find(traceId, parquetFile);
      const handle = found && (await openRegularFile(found.path));
      return handle && { handle, tag: found?.etag === undefined ? {} : { etag: found.etag } };
    } catch (cause) {
      throw new ArtifactError('unavailable', `${parquetFile} of ${traceId} cannot be read (${String(cause)})`, {
        cause,
      });
    }
  }
}

/** Returns the engine command whose telemetry a path names; `undefined` for any other path, and for a command that the step does not have. */
function invocationOf(step: CatalogStep, path: ArtifactPath): CatalogInvocation | undefined {
  const telemetry = stepTelemetryOf(path);
  return telemetry?.stepIndex === step.index ? step.invocations[telemetry.number - 1] : undefined;
}

function sorted(files: Artifact[]): readonly Artifact[] {
  return files.sort((a, b) => (a.path < b.path ? -1 : 1));
}

function keyOf({ runId, index }: CatalogStep, path: ArtifactPath): ArtifactKey {
  return { runId, stepIndex: index, path };
}

/** Finds Parquet files of runs' telemetry on this machine. */
export interface TelemetryFiles {
  /**
   * @param name for example `telemetry.parquet`
   * @returns its absolute path, with an HTTP entity tag if that of the local file would differ on other machines; `undefined` if there is none
   */
  find(traceId: TraceId, name: string): Promise<{ readonly path: string; readonly etag?: string } | undefined>;
}
