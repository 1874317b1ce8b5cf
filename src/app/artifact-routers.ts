import type { Router } from 'express';
import { RunArtifacts } from '../api/artifact/run-artifacts.js';
import type { TelemetryFiles } from '../api/artifact/telemetry-files.js';
import { uploadRouter } from '../api/own/upload-router.js';
import { artifactRouter } from '../api/v2/artifact-router.js';
import type { Guard } from '../component/guard.js';
import type { Logger } from '../component/logger.js';
import type { Configuration } from '../config/configuration.js';
import { STEP_LIMITS } from '../source/artifact/artifact-limits.js';
import type { RunCatalog } from '../store/run-catalog.js';
import type { ArtifactStorage } from './artifact-storage.js';

/** What the routers are made with. */
export interface ArtifactRoutersDeps {
  readonly catalog: RunCatalog;
  readonly storage: ArtifactStorage;
  /** Looks at the disk. */
  readonly guard: Guard;
  readonly logger: Logger;
  /** Where Parquet files are not in the data folder. */
  readonly telemetry: TelemetryFiles | undefined;
}

/** Artifacts over HTTP; each router stands behind `apiRouter`. */
export interface ArtifactRouters {
  /** What they read from. */
  readonly artifacts: RunArtifacts;
  /** Lists and downloads, as the hosted platform has them. */
  readonly downloads: Router;
  /** For `exec` on other machines; on both ports, since `--to` names either. */
  readonly uploads: Router;
}

/** Makes the routers of artifacts. */
export function artifactRouters(configuration: Configuration, deps: ArtifactRoutersDeps): ArtifactRouters {
  const { catalog, storage, guard, logger, telemetry } = deps;
  const openStore = () => storage.open();
  const artifacts = new RunArtifacts({
    ...{ catalog, openStore, dataFolder: configuration['data-dir'] },
    ...(telemetry === undefined ? {} : { telemetry }),
  });
  const limits = { ...STEP_LIMITS, maxFileBytes: configuration['max-artifact-bytes'] };
  return {
    artifacts,
    downloads: artifactRouter({ artifacts, logger }),
    uploads: uploadRouter(limits, { artifacts, openStore, guard, logger }),
  };
}
