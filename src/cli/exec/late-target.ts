import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { SPOOL_FOLDER } from '../../source/spool-folder.js';
import type { StepStart } from '../../store/step-start.js';
import { chooseBridge, openFolder } from './choose-target.js';
import type { ExecTarget, StepTarget } from './exec-target.js';
import type { TargetChoice } from './target-choice.js';

/**
 * Where the records of a command go. A bridge that runs is told at once that the command has begun; the data folder is
 * opened when the first records come. Of a command that had none, its step alone is noted there.
 */
export class LateTarget {
  private readonly bridge: Promise<ExecTarget | undefined>;
  private store: Promise<ExecTarget> | undefined;
  private book: Promise<StepTarget> | undefined;

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
    this.store ??= this.openStore();
    return this.store;
  }

  /** Opens it to note the step's end; no records come any more. @throws as `open` */
  openForEnd(): Promise<StepTarget> {
    if (this.store !== undefined || this.hasLeftovers()) return this.open();
    this.book ??= this.openBook();
    return this.book;
  }

  /**
   * What knows whether the run was cancelled. Where others can write to the state, it is opened at once.
   * @throws where nobody but this process can cancel it, and as `open`
   */
  async forCancellation(): Promise<StepTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    if (this.choice.configuration['database-url'] === 'off') throw new Error('nobody else has the data folder');
    return await this.open();
  }

  /** Closes what was opened. */
  async close(deadline: AbortSignal): Promise<void> {
    const opened = await (this.store ?? this.book ?? this.bridge).catch(() => undefined);
    await opened?.close(deadline);
  }

  private async openStore(): Promise<ExecTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    const { configuration, context } = this.choice;
    const { openOwnStore } = await import('./own-store.js');
    return this.begun(await openFolder(this.choice, () => openOwnStore(configuration, context, this.choice)));
  }

  private async openBook(): Promise<StepTarget> {
    const bridge = await this.bridge;
    if (bridge !== undefined) return bridge;
    const { configuration, context } = this.choice;
    const { openOwnBook } = await import('./own-book.js');
    return this.begun(await openFolder(this.choice, () => openOwnBook(configuration, context)));
  }

  /** Where it fails, the end says it, once more with the beginning. */
  private async begun<Target extends StepTarget>(target: Target): Promise<Target> {
    await target.book.begin(this.start).catch(() => undefined);
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
