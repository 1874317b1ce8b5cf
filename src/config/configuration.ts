import type { DeclaredEnvironment, DeclaredScope } from '../run/scope-finder.js';
import type { S3Credentials } from '../storage/bucket/object-store.js';
import type { DestinationConfig, SignalEndpoint } from './destination-config.js';
import type { DestinationSettings } from './destination-settings.js';
import type { JobDefinition } from './jobs.js';
import type { KafkaJournalSettings, KafkaSourceSettings } from './kafka-settings.js';
import type { SetSwitches } from './mapping-options.js';
import type { SettingKey, SettingValues } from './settings.js';

/** All settings of the program, parsed and complete. */
export interface Configuration extends SettingValues {
  /** The settings that were set explicitly; the others have their default. */
  readonly chosen: ReadonlySet<SettingKey>;
  /** Mapping switches by name; those left out have their default. */
  readonly mapping: SetSwitches;
  /** The destinations that the configuration file names. */
  readonly destinations: readonly DestinationSettings[];
  /** The topics that it says are read; `null` where there are none. */
  readonly kafkaSource: KafkaSourceSettings | null;
  /** The topics that several machines share their work by; `null` where the bridge is alone. */
  readonly journal: KafkaJournalSettings | null;
  /** The jobs that the configuration file declares. */
  readonly jobs: readonly JobDefinition[];
  /** The projects that it declares. */
  readonly projects: readonly DeclaredScope[];
  /** The environments that it declares. */
  readonly environments: readonly DeclaredEnvironment[];
  /** The destination that OpenTelemetry's environment variables describe; it takes the place of one of its name in the file. */
  readonly environmentDestination: DestinationConfig | undefined;
  /** Where the standard variables have metrics of runs pushed to. */
  readonly environmentMetrics: SignalEndpoint | undefined;
  /** How often metrics of runs are pushed, in milliseconds. */
  readonly metricsIntervalMs: number;
  /** What is wrong with OpenTelemetry's variables; `undefined` where nothing is. */
  readonly environmentTrouble: EnvironmentTrouble | undefined;
  /** Resource attributes that exports carry in place of the engine's. */
  readonly resourceOverrides: Readonly<Record<string, string>>;
  /** What the environment alone says of the hosted platform; never shown. `null` where it is not set. */
  readonly platformSecrets: PlatformSecrets;
  /** What seals secrets of webhooks; never shown. `null` where it is a file in the data folder. */
  readonly webhookKey: Uint8Array | null;
  /** What AWS' own variables say of the bucket of artifacts; `null` where artifacts are kept in the data folder. */
  readonly bucketEnvironment: BucketEnvironment | null;
}

/** What is wrong with OpenTelemetry's variables, none of which is an error: they may have been set for another program. */
export interface EnvironmentTrouble {
  /** Why they make no destination although they name an endpoint; `null` where they make one, or name none. */
  readonly offReason: string | null;
  /** Variables that are invalid and ignored, each with what is wrong, in a sentence without secrets. */
  readonly ignored: readonly string[];
}

/** What AWS' variables say; `null` where they say nothing. */
export interface BucketEnvironment {
  readonly credentials: S3Credentials | null;
  readonly region: string | null;
  readonly endpoint: string | null;
}

/** Secrets of the hosted platform. */
export interface PlatformSecrets {
  /** Of a service account or a person: RUN_BRIDGE_PLATFORM_TOKEN. */
  readonly token: string | null;
  /** Of the webhook subscription: RUN_BRIDGE_PLATFORM_HOOK_SECRET. */
  readonly hookSecret: string | null;
}

/** One value of the configuration and where it came from, as `run-bridge config` prints it. */
export interface ConfigurationRow {
  readonly name: string;
  /** Its text; secrets are masked. */
  readonly value: string;
  /** For example `default`, `--http`, `RUN_BRIDGE_HTTP` or a file's path and line. */
  readonly origin: string;
}

/** The configuration with its history. */
export interface ResolvedConfiguration {
  readonly configuration: Configuration;
  readonly rows: readonly ConfigurationRow[];
  /** The configuration file's path; `null` when there is none. */
  readonly file: string | null;
  /** What is odd yet harmless, one sentence each. */
  readonly warnings: readonly string[];
}
