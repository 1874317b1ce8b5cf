import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Router } from 'express';
import type { Configuration } from '../config/configuration.js';
import { type Clock, DEFAULT_RETRY_POLICY, RetryPolicy } from '../core/clock.js';
import type { Guard } from '../core/guard.js';
import type { Health } from '../core/health.js';
import type { Component } from '../core/lifecycle.js';
import type { Logger } from '../core/logger.js';
import { REJECTS_FILE, RejectFile } from '../files/feature.js';
import type { StepRegistry } from '../run/step-registry.js';
import type { State } from '../storage/state.js';
import { platformHook } from './hook.js';
import { HostedSteps } from './hosted-steps.js';
import { PlatformApi } from './platform-api.js';
import { PlatformHttp } from './platform-http.js';
import { PullStore } from './pull-store.js';
import { PullWorker } from './pull-worker.js';
import { RunPuller, type StepConsumer } from './run-puller.js';

/** What bringing in hosted runs takes from outside. */
export interface HostedRunsDeps {
  readonly state: Pick<State, 'db' | 'sync'>;
  /** What the store has the platform's runs under where the records go to a bridge elsewhere; else the base URL. */
  readonly storeName?: string;
  /** Gives what takes a step's records. */
  readonly openConsumer: () => StepConsumer;
  /** Gets the runs and their steps; `undefined` where a bridge elsewhere takes the records. */
  readonly registry: StepRegistry | undefined;
  /** Asked before a download. */
  readonly guards: readonly Guard[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly pid: number;
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** The program's version. */
  readonly version: string;
}

/** Maximum number of runs that wait to be pulled. */
export const MAX_WAITING_RUNS = 10_000;
/** The largest Parquet file of a step that is downloaded, in bytes. */
const MAX_STEP_FILE_BYTES = 512 * 2 ** 20;
/** For a run that could not be had, and for a platform that gives none. */
const RUN_RETRY_POLICY = { baseMs: 5_000, maxMs: 600_000, maxRetryAfterMs: 600_000 };

/** The configured components that pull runs of the hosted platform, not yet started. */
export class HostedRuns {
  readonly folder: DownloadFolder;
  readonly puller: RunPuller;
  readonly worker: PullWorker;
  /** The runs that are to be brought in, or were. */
  readonly store: PullStore;
  /** What the store has the platform's runs under. */
  readonly storeName: string;
  private readonly http: PlatformHttp;

  constructor(
    private readonly configuration: Configuration,
    private readonly deps: HostedRunsDeps,
  ) {
    const { clock, logger, random, registry } = deps;
    const store = new PullStore(deps.state);
    this.store = store;
    const { 'platform-url': platform, platformSecrets } = configuration;
    this.storeName = deps.storeName ?? platform;
    this.folder = new DownloadFolder(configuration['data-dir'], deps.pid, clock);
    this.http = new PlatformHttp(
      {
        baseUrl: new URL(platform),
        token: platformSecrets.token ?? '',
        userAgent: `run-bridge/${deps.version}`,
      },
      { clock, logger, retryPolicy: new RetryPolicy(DEFAULT_RETRY_POLICY, random) },
    );
    this.puller = new RunPuller({
      folder: this.folder.path,
      maxFileBytes: MAX_STEP_FILE_BYTES,
      openConsumer: deps.openConsumer,
      ...(registry === undefined ? {} : { steps: new HostedSteps(registry, platform) }),
      rejects: new RejectFile(join(configuration['data-dir'], REJECTS_FILE), clock, (reason) =>
        logger.error({}, reason),
      ),
      guards: deps.guards,
      clock,
    });
    this.worker = new PullWorker(
      { platform: this.storeName, intervalMs: configuration['platform-interval'] },
      {
        store,
        puller: this.puller,
        apiOf: (accountId) => this.apiOf(accountId),
        retryPolicy: new RetryPolicy(RUN_RETRY_POLICY, random),
        clock,
        logger,
      },
    );
  }

  apiOf(accountId: string): PlatformApi {
    return new PlatformApi(this.http, accountId);
  }

  /** Parts that run as long as the program, the ones that others need first. */
  get components(): readonly Component[] {
    return [this.folder, this.worker];
  }

  /** The route for webhooks, which wake the worker; and the worker's health check. */
  openHook(health: Health): Router {
    const { 'platform-account': account, platformSecrets } = this.configuration;
    const secret = platformSecrets.hookSecret;
    if (secret === null) throw new Error('webhooks need a secret');
    health.register(this.worker.name, () => {
      const { lastError, counts } = this.worker;
      return { ready: true, details: { ...counts, lastError } };
    });
    const accountId = account === 'off' ? null : account;
    return platformHook(
      { platform: this.storeName, secret, accountId, maxWaiting: MAX_WAITING_RUNS },
      { ...this.deps, store: this.store, onNoted: () => this.worker.wake() },
    );
  }
}

/** What a process that died has left is removed after so long, in milliseconds: a day. */
const LEFT_MS = 86_400_000;

/**
 * Where downloads lie while they are read: `pull/<process id>` in the data folder, so that a bridge and a `pull` that
 * hands over to it do not meet. Removed at the end; what a crash leaves goes a day later.
 */
export class DownloadFolder implements Component {
  readonly name = 'downloads';
  readonly path: string;
  private readonly parent: string;

  constructor(
    dataFolder: string,
    pid: number,
    private readonly clock: Clock,
  ) {
    this.parent = join(dataFolder, 'pull');
    this.path = join(this.parent, String(pid));
  }

  /** @throws Error of the file system when the folder cannot be made. */
  async start(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
    await mkdir(this.path, { recursive: true });
    for (const name of await readdir(this.parent)) await this.removeOld(join(this.parent, name));
  }

  async shutdown(): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }

  private async removeOld(path: string): Promise<void> {
    const found = await stat(path).catch(() => undefined);
    if (found === undefined || this.clock.nowUnixMs() - found.mtimeMs < LEFT_MS) return;
    await rm(path, { recursive: true, force: true });
  }
}
