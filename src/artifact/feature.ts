import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import type { Guard } from '../core/guard.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import type { ArtifactStore } from '../storage/artifacts.js';
import { STEP_LIMITS } from '../storage/artifacts.js';
import type { State } from '../storage/state.js';
import type { RunArtifacts, TelemetryFiles } from './run-artifacts.js';

// The door of artifacts over HTTP: no other folder imports anything else of this one. The rest is loaded on the first request.

export { ARTIFACTS_FOLDER, ArtifactStorage } from './artifact-storage.js';
export type { TelemetryFiles } from './run-artifacts.js';

/** What artifacts need of the program. */
export interface ArtifactHost {
  readonly state: Pick<State, 'catalog'>;
  readonly openArtifacts: () => Promise<ArtifactStore>;
  /** Checks the free disk space before an upload. */
  readonly disk: Guard;
  /** Where Parquet files are not in the data folder. */
  readonly shared: TelemetryFiles | undefined;
  readonly logger: Logger;
}

/** Artifacts of a configuration. */
export function createArtifacts(
  config: Pick<Configuration, 'data-dir' | 'max-artifact-bytes'>,
  host: ArtifactHost,
): Artifacts {
  return new Artifacts(config, host);
}

/** Downloads and uploads of what steps left. */
export class Artifacts implements Feature {
  readonly components = [];
  private readonly artifacts = lazy(() => this.load());
  private readonly uploading = lazy(() => this.loadUploads());

  constructor(
    private readonly config: Parameters<typeof createArtifacts>[0],
    private readonly host: ArtifactHost,
  ) {}

  readonly api: NonNullable<Feature['api']> = async () => {
    const { artifactRouter } = await import('./downloads.js');
    const { logger } = this.host;
    return [artifactRouter({ artifacts: await this.open(), logger }), await this.uploads()];
  };

  readonly apiPaths: NonNullable<Feature['apiPaths']> = async () => (await import('./openapi.js')).ARTIFACT_PATHS;

  /** Uploads, for the port that telemetry comes to as well: `--to` of `exec` may name either. Both ports have one router, with its limits. */
  uploads(): Promise<Router> {
    return this.uploading.get();
  }

  /** What steps have to download. */
  open(): Promise<RunArtifacts> {
    return this.artifacts.get();
  }

  private async loadUploads(): Promise<Router> {
    const { uploadRouter } = await import('./uploads.js');
    const { openArtifacts, disk, logger } = this.host;
    const limits = { ...STEP_LIMITS, maxFileBytes: this.config['max-artifact-bytes'] };
    return uploadRouter(limits, { artifacts: await this.open(), openStore: openArtifacts, guard: disk, logger });
  }

  private async load(): Promise<RunArtifacts> {
    const { RunArtifacts: Found } = await import('./run-artifacts.js');
    const { state, openArtifacts, shared } = this.host;
    return new Found({
      catalog: state.catalog,
      openStore: openArtifacts,
      dataFolder: this.config['data-dir'],
      ...(shared === undefined ? {} : { telemetry: shared }),
    });
  }
}
