import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { reachableUrl } from '../cli/reachable-url.js';
import { lazy } from '../core/lazy.js';
import { pause } from '../core/pause.js';
import { askBridge } from '../files/ask-bridge.js';
import { SPOOL_FOLDER } from '../files/spool-folder.js';
import { DataFolderInUseError } from '../storage/data-folder-in-use-error.js';
import { readHolder } from '../storage/lock-holder.js';
import type { StepStart } from '../storage/step-start.js';
import type { ExecTarget, StepTarget, TargetChoice } from './exec-target.js';

/**
 * Where the records of a command go. A bridge that runs is told at once that the command has begun; the data folder is
 * opened when the first records come. Of a command that had none, its step alone is noted there.
 */
export class CommandTarget {
  private readonly bridge: Promise<ExecTarget | undefined>;
  private readonly store = lazy(() => this.openStore());
  private readonly registry = lazy(() => this.openRegistry());

  constructor(
    private readonly choice: TargetChoice,
    private readonly start: StepStart,
  ) {
    this.bridge = chooseBridge(choice).then(async (bridge) => bridge && (await this.begun(bridge)));
    this.bridge.catch(() => undefined);
  }

  /** Whether a bridge that runs takes the records. @throws what keeps it from being asked */
  async isBridge(): Promise<boolean> {
    return (await this.bridge) !== undefined;
  }

  /** Opens it for records. @throws StoreError, ConfigurationError, DataFolderInUseError */
  open(): Promise<ExecTarget> {
    return this.store.get();
  }

  /** Opens it to note the step's end; no records come any more. @throws as `open` */
  openForEnd(): Promise<StepTarget> {
    if (this.store.isNeeded || this.hasLeftovers()) return this.open();
    return this.registry.get();
  }

  /**
   * What knows whether the run was cancelled. Where others can write to the state, it is opened at once.
   * @throws where nobody but this process can cancel it, and as `open`
   */
  async forCancellation(): Promise<StepTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    if (this.choice.configuration['database-url'] === 'off') throw new Error('no other process uses the data folder');
    return await this.open();
  }

  /** Closes what was opened. */
  async close(deadline: AbortSignal): Promise<void> {
    const opened = (await this.store.ifNeeded()) ?? (await this.registry.ifNeeded());
    await (opened ?? (await this.bridge.catch(() => undefined)))?.close(deadline);
  }

  private async openStore(): Promise<ExecTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    const { openOwnStore } = await import('./own-store.js');
    return this.begun(await openFolder(this.choice, () => openOwnStore(this.choice)));
  }

  private async openRegistry(): Promise<StepTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    const { openOwnRegistry } = await import('./own-store.js');
    return this.begun(await openFolder(this.choice, () => openOwnRegistry(this.choice)));
  }

  /** Where it fails, the end says it, once more with the beginning. */
  private async begun<Target extends StepTarget>(target: Target): Promise<Target> {
    await target.registry.register(this.start).catch(() => undefined);
    return target;
  }

  /** Whether other commands left telemetry behind, which is taken in by a store alone. */
  private hasLeftovers(): boolean {
    try {
      const names = readdirSync(join(this.choice.configuration['data-dir'], SPOOL_FOLDER));
      return names.some((name) => name !== this.start.stepId);
    } catch {
      return false;
    }
  }
}

/** How often a data folder that another command holds is tried again, in milliseconds. */
const FOLDER_RETRY_MS = 300;

/** A bridge that takes the records: `--to`, the user's own endpoint, the one that holds the data folder, the one on the default port. */
export async function chooseBridge(choice: TargetChoice): Promise<ExecTarget | undefined> {
  const found = await findBridge(choice);
  return found === undefined ? undefined : handOver(found.url, choice, found.hasAnswered);
}

/**
 * The data folder, where no bridge was found. One that another command holds just now is waited for; where a bridge has
 * come to hold it meanwhile, that one takes the records.
 * @param open opens the folder, or as much of it as is needed
 * @throws StoreError, ConfigurationError; DataFolderInUseError when it was waited for in vain.
 */
export async function openFolder<Target>(
  choice: TargetChoice,
  open: () => Promise<Target>,
): Promise<Target | ExecTarget> {
  for (;;) {
    try {
      return await open();
    } catch (error) {
      if (!(error instanceof DataFolderInUseError) || choice.giveUp.aborted) throw error;
      choice.onTrouble(error.message);
      const holder = error.holder?.address;
      const found = typeof holder === 'string' ? await askBridge(reachableUrl(holder)) : undefined;
      if (found !== undefined) return await handOver(found.otlpUrl, choice, true);
      await pause(choice.context.clock, FOLDER_RETRY_MS, choice.giveUp);
    }
  }
}

async function handOver(url: string, choice: TargetChoice, hasAnswered: boolean): Promise<ExecTarget> {
  const { handOverTo } = await import('./hand-over.js');
  return await handOverTo(url, choice, hasAnswered);
}

async function findBridge({ configuration, to, isFolderChosen, userEndpoint }: TargetChoice) {
  // One that does not answer yet may be starting.
  if (to !== undefined) {
    const found = await askBridge(to);
    return { url: found?.otlpUrl ?? to, hasAnswered: found !== undefined };
  }
  const { host, port } = configuration.http;
  const byDefault = isFolderChosen || userEndpoint !== undefined || port === 0 ? [] : [urlOf(host, port)];
  const announced = announcedAddress(configuration['data-dir']);
  for (const address of [userEndpoint, announced, ...byDefault]) {
    const found = address === undefined ? undefined : await askBridge(address);
    if (found !== undefined) return { url: found.otlpUrl, hasAnswered: true };
  }
  return undefined;
}

function urlOf(host: string, port: number): string {
  return reachableUrl(`http://${host.includes(':') ? `[${host}]` : host}:${port}`);
}

/** Where the program that holds a data folder says that it listens; it may have died since. `undefined` where none says so. */
export function announcedAddress(dataFolder: string): string | undefined {
  const address = readHolder(dataFolder)?.address ?? undefined;
  return address === undefined ? undefined : reachableUrl(address);
}
