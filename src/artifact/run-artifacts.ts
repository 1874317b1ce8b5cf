import { join } from 'node:path';
import { closeOnFailure } from '../core/errors.js';
import type { TraceId } from '../record/telemetry-record.js';
import {
  type Artifact,
  ArtifactError,
  type ArtifactKey,
  type ArtifactPath,
  type ArtifactStore,
  type ByteRange,
  describeFile,
  type OpenArtifact,
  openRegularFile,
  readFileOf,
  stepTelemetryOf,
  telemetryPath,
} from '../storage/artifacts.js';
import type { CatalogInvocation, CatalogStep, RunCatalog } from '../storage/run-catalog.js';

/** What is needed to find artifacts of runs. */
export interface RunArtifactsDeps {
  readonly catalog: Pick<RunCatalog, 'findRun' | 'stepsOf'> & Pick<RunCatalog, 'latestRunsOf'>;
  /** Opens the store; called for each request. */
  readonly openStore: () => Promise<ArtifactStore>;
  /** The data folder; Parquet files are in its `runs/<trace id>/`. */
  readonly dataFolder: string;
  /** Finds Parquet files that are not in the data folder. */
  readonly telemetry?: TelemetryFiles;
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

  /** Returns the sorted paths of all downloads of a step. @throws ArtifactError */
  async list({ runId, index, invocations }: CatalogStep): Promise<readonly ArtifactPath[]> {
    const store = await this.deps.openStore();
    const kept = (await store.list(runId, index)).map(({ path }) => path);
    const telemetry = invocations.flatMap(({ isSaved }, at) => (isSaved ? [telemetryPath(index, at + 1)] : []));
    return [...kept, ...telemetry].sort();
  }

  /** Returns the downloads of a step with their sizes, without telemetry whose file is missing. @throws ArtifactError */
  async files(step: CatalogStep): Promise<readonly Artifact[]> {
    const { runId, index, invocations } = step;
    const store = await this.deps.openStore();
    const telemetry = await Promise.all(invocations.map((_, at) => this.stat(step, telemetryPath(index, at + 1))));
    const files = [...(await store.list(runId, index)), ...telemetry.filter((file) => file !== undefined)];
    return files.sort((a, b) => (a.path < b.path ? -1 : 1));
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
