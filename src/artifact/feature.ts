import type { Router } from 'express';
import type { CliCommand, WithState } from '../cli/command.js';
import type { Configuration } from '../config/configuration.js';
import { STATE_SETTINGS } from '../config/settings.js';
import type { Guard } from '../core/guard.js';
import { lazy } from '../core/lazy.js';
import type { Logger } from '../core/logger.js';
import type { Feature } from '../feature.js';
import { type ArtifactStore, STEP_LIMITS } from '../storage/artifacts.js';
import type { State } from '../storage/state.js';
import type { RunArtifacts, TelemetryFiles } from './run-artifacts.js';

// The door of artifacts over HTTP: other folders import only this file. The rest is loaded on the first request.

export { ARTIFACTS_FOLDER, ArtifactStorage } from './artifact-storage.js';
export type { TelemetryFiles } from './run-artifacts.js';

/** Parts of the program that artifacts use. */
export interface ArtifactHost {
  readonly state: Pick<State, 'catalog'>;
  readonly openArtifacts: () => Promise<ArtifactStore>;
  /** Checks the free disk space before an upload. */
  readonly disk: Guard;
  /** Finds Parquet files that are not in the data folder. */
  readonly shared: TelemetryFiles | undefined;
  readonly logger: Logger;
}

/** `run-bridge artifact get PATH` */
export function artifactCommand(withState: WithState): CliCommand {
  return {
    name: 'artifact',
    operands: '<get> <PATH>',
    summary:
      'write an artifact of a job, such as manifest.json, for state:modified and --defer: that of the newest run that has it; a server may be at work',
    settings: [...STATE_SETTINGS, 'artifacts'],
    flags: [
      ['--job <NAME>', 'the job'],
      ['--last-good', 'of runs that ended with success (default: of all that ended)'],
      ['--environment <NAME>', 'only of runs of this environment'],
      ['--project <NAME>', 'only of runs of this project'],
      ['--output <FILE>', 'write it to this file, whose folder is made (default: standard output)'],
      ['--account <ID>', 'the account that the runs belong to (default: the first)'],
      ['--to <URL>', 'ask this bridge (default: $RUN_BRIDGE_TO, else read the data folder)'],
    ],
    examples: [
      [
        'run-bridge artifact get --job nightly --last-good manifest.json --output state/manifest.json',
        'then: dbt build --select state:modified+ --defer --state state',
      ],
      [
        'run-bridge artifact get --job nightly --last-good manifest.json --to http://bridge:4380',
        'of a bridge elsewhere, with RUN_BRIDGE_TOKEN',
      ],
    ],
    async run(invocation) {
      const { getArtifact } = await import('./command.js');
      return getArtifact(invocation, withState);
    },
  };
}

/** Creates the artifacts of a configuration. */
export function createArtifacts(
  config: Pick<Configuration, 'data-dir' | 'max-artifact-bytes'>,
  host: ArtifactHost,
): Artifacts {
  return new Artifacts(config, host);
}

/** Downloads and uploads of steps' artifacts. */
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

  /** Returns the router for uploads, which the OTLP port serves as well, since `--to` of `exec` may name either port. Both share one router with its limits. */
  uploads(): Promise<Router> {
    return this.uploading.get();
  }

  /** Opens the downloads of steps. */
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
