import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../component/reason-of.js';
import { STEP_LIMITS } from '../../source/artifact/artifact-limits.js';
import type { FoundArtifact } from '../../source/artifact/found-artifact.js';
import { keepArtifacts } from '../../source/artifact/keep-artifacts.js';
import { spoolArtifacts } from '../../source/artifact/spooled-artifacts.js';
import { ENGINE_FILE, SPOOLED_OTLP_FILE } from '../../source/spool-folder.js';
import type { CommandFacts } from './command-facts.js';
import { readEngineSwitches } from './engine-switches.js';
import type { ExecTarget } from './exec-target.js';
import { findArtifacts } from './find-artifacts.js';
import { stepStartOf } from './step-facts.js';
import { findTargetFolder } from './target-folder.js';

/** What a command left in the engine's target folder, on its way to where artifacts are kept. Nothing here fails a command. */
export class StepArtifacts {
  private waiting: readonly FoundArtifact[] = [];
  private reason = 'the bridge was not reached';

  constructor(private readonly facts: CommandFacts) {}

  /** Those that are not kept yet. */
  get count(): number {
    return this.waiting.length;
  }

  /** Looks for what the command wrote; it has ended. */
  async find(): Promise<void> {
    const { command, context, configuration, startedUnixMs, notices } = this.facts;
    try {
      const target = await findTargetFolder(readEngineSwitches(command, context.environment), context.workingDir);
      if (target === undefined) return;
      const limits = { ...STEP_LIMITS, maxFileBytes: configuration['max-artifact-bytes'] };
      const { artifacts, leftOut } = await findArtifacts(target, startedUnixMs, limits);
      this.waiting = artifacts;
      if (leftOut !== null) notices.say(`not kept as artifacts of the step: ${leftOut}`);
    } catch (error) {
      notices.say(`artifacts of the command could not be looked for: ${reasonOf(error)}`);
    }
  }

  /** Brings them to where the records went: they are there before the step's end is told. */
  async keep({ book, artifacts: sink }: ExecTarget, signal: AbortSignal): Promise<void> {
    if (this.waiting.length === 0) return;
    try {
      // It has begun already, and says the same again.
      const place = await book.begin(stepStartOf(this.facts));
      const { left, refused, reason } = await keepArtifacts(place, this.waiting, sink, signal);
      this.waiting = left;
      if (reason !== null) this.reason = reason;
      const [first] = refused;
      if (first !== undefined) {
        const others = refused.length > 1 ? ` and ${refused.length - 1} more` : '';
        this.facts.notices.say(`not kept as artifacts of the step: ${first.path}${others}: ${this.reason}`);
      }
    } catch (error) {
      this.reason = reasonOf(error);
    }
  }

  /** Copies what is not kept yet into the command's folder. @throws what the file system throws. */
  async spool(folder: string): Promise<void> {
    await spoolArtifacts(folder, this.waiting);
  }

  /**
   * The records are where they belong, and some artifacts are not: leaves these in the command's folder, alone.
   * @param writeEntry says in the folder whose they are
   * @returns whether the folder is needed
   */
  async leave(folder: string | undefined, next: string, writeEntry: () => Promise<void>): Promise<boolean> {
    const { notices } = this.facts;
    if (this.waiting.length === 0) return false;
    const what = `artifacts of the command that are not kept: ${this.waiting.length} (${this.reason})`;
    try {
      if (folder === undefined) throw new Error('there is no folder to leave them in');
      await this.spool(folder);
      await writeEntry();
      for (const name of [ENGINE_FILE, SPOOLED_OTLP_FILE]) await rm(join(folder, name), { force: true });
      notices.say(`${what}; they are left in ${folder}: ${next}`);
      return true;
    } catch {
      notices.say(what);
      return false;
    }
  }
}
