import { open, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import type { SingleBar } from 'cli-progress';
import { errorCode, reasonOf } from '../core/errors.js';
import { lazy } from '../core/lazy.js';
import type { StepRegistry } from '../run/step-registry.js';
import { STEP_LIMITS } from '../storage/artifacts.js';
import { type EngineSwitches, findProjectFolder, PROJECT_FILE, readEngineSwitches } from './command-environment.js';
import { type CommandFacts, stepStartOf } from './command-facts.js';
import { ENGINE_FILE, SPOOLED_OTLP_FILE } from './command-folder.js';
import type { CommandOutput } from './command-output.js';
import type { CommandStep } from './command-steps.js';
import { EngineSnapshots } from './engine-snapshots.js';
import type { ExecTarget } from './exec-target.js';
import { copyArtifactsInto, type FoundArtifact, findArtifacts } from './found-artifacts.js';
import { announceUploads, type Upload, upload } from './keep-artifacts.js';

/** So many artifacts are stored however slow the disk is: handing them over would take as long. */
const FEW_ARTIFACTS = 200;

/** What a command left in the engine's target folder, and what it wrote to its output, on its way to where artifacts are kept. Nothing here fails a command. */
export class StepArtifacts {
  /** What each engine command left when it ended. */
  readonly snapshots: EngineSnapshots;
  private found: readonly FoundArtifact[] = [];
  private outputs: readonly FoundArtifact[] = [];
  private hasFailed = false;
  /** Those that are not kept yet, of each step. */
  private waiting: readonly Upload[] = [];
  /** Why some are not kept; `null` where the caller was not to wait for them. */
  private reason: string | null = 'the bridge was not reached';

  constructor(
    private readonly facts: CommandFacts,
    private readonly output: CommandOutput,
  ) {
    this.snapshots = new EngineSnapshots(facts, () => this.targetFolder());
  }

  /** Those that are not kept yet. */
  get count(): number {
    return this.waiting.reduce((count, { artifacts }) => count + artifacts.length, 0);
  }

  /** Looks for what the command wrote; it has ended. */
  async find(hasFailed: boolean): Promise<void> {
    const { configuration, startedUnixMs, notices } = this.facts;
    this.hasFailed = hasFailed;
    await this.saveOutput();
    try {
      const target = await this.targetFolder();
      if (target === undefined) return;
      const limits = { ...STEP_LIMITS, maxFileBytes: configuration['max-artifact-bytes'] };
      const { artifacts, leftOut } = await findArtifacts(target, startedUnixMs, limits);
      this.found = artifacts;
      if (leftOut !== null) notices.say(`not kept as artifacts of the step: ${leftOut}`);
    } catch (error) {
      notices.say(`artifacts of the command could not be looked for: ${reasonOf(error)}`);
    }
  }

  /** Says whose they are, once the steps of the command are known. */
  async divide(steps: readonly CommandStep[]): Promise<void> {
    const own = stepStartOf(this.facts);
    const divided = new Map(await this.snapshots.divide(this.found, steps));
    // Of a command that ran no engine and did well nothing is kept: that would open the store for nothing.
    const outputs = steps.length > 0 || this.hasFailed ? this.outputs : [];
    divided.set(own.stepId, [...outputs, ...(divided.get(own.stepId) ?? [])]);
    this.waiting = [...divided].flatMap(([stepId, artifacts]) => {
      const start = steps.find((step) => step.start.stepId === stepId)?.start ?? own;
      return artifacts.length === 0 ? [] : [{ start, artifacts }];
    });
  }

  /** Says which they are: the run is not over before they can be downloaded. @throws StepRegistryError */
  async announce(registry: StepRegistry): Promise<void> {
    for (const { start } of this.waiting) {
      // It has begun already, unless that was said in vain.
      if (start.stepId !== this.facts.stepId) await registry.register(start);
    }
    await announceUploads(registry, this.waiting);
  }

  /** Brings them to where the records went, as long as that goes on, and says when all are there. */
  async keep({ registry, artifacts: sink, maxArtifactsMs }: ExecTarget, stop: AbortSignal): Promise<void> {
    if (this.count === 0) return;
    const { context, options, notices } = this.facts;
    const { clock } = context;
    const over = new AbortController();
    const isHandedOver = Number.isFinite(maxArtifactsMs) && this.count > FEW_ARTIFACTS;
    const timer = isHandedOver ? clock.after(maxArtifactsMs, () => over.abort()) : undefined;
    const signal = AbortSignal.any([stop, over.signal]);
    const progress = new UploadProgress(this.count, this.facts);
    const left: Upload[] = [];
    let doneCount = 0;
    for (const one of this.waiting) {
      try {
        // It has begun already, and says the same again.
        const position = await registry.register(one.start);
        // Where nothing could be kept of one step, the next is tried once.
        const patienceMs = left.length === 0 ? options.flushTimeoutMs : 0;
        const before = doneCount;
        const onProgress = (count: number) => {
          doneCount = before + count;
          progress.show(doneCount);
        };
        const kept = await upload(registry, one, position, { sink, clock, signal, patienceMs, onProgress });
        if (kept.left.length > 0) left.push({ ...one, artifacts: kept.left });
        if (kept.reason !== null) this.reason = kept.reason;
        const [first] = kept.refused;
        if (first !== undefined) {
          const others = kept.refused.length > 1 ? ` and ${kept.refused.length - 1} more` : '';
          notices.say(`not kept as artifacts of the step: ${first.path}${others}: ${this.reason}`);
        }
      } catch (error) {
        this.reason = reasonOf(error);
        left.push(one);
      }
    }
    timer?.cancel();
    progress.end();
    this.waiting = left;
    if (over.signal.aborted && !stop.aborted) this.reason = null;
  }

  /** Copies what is not kept yet into the command's folder. @throws what the file system throws. */
  async copyInto(folder: string): Promise<void> {
    for (const { start, artifacts } of this.waiting) {
      await copyArtifactsInto(folder, start.stepId === this.facts.stepId ? null : start.stepId, artifacts);
    }
    await this.snapshots.remove();
  }

  /**
   * The records are where they belong, and some artifacts are not: leaves these in the command's folder, alone.
   * @param writeEntry says in the folder whose they are
   * @returns whether the folder is needed
   */
  async leave(
    folder: string | undefined,
    next: string,
    registry: StepRegistry,
    writeEntry: () => Promise<void>,
  ): Promise<boolean> {
    const { notices } = this.facts;
    if (this.count === 0) return false;
    const count = this.count.toLocaleString('en');
    const what =
      this.reason === null
        ? `artifacts of the command that are not kept yet: ${count}`
        : `artifacts of the command that are not kept: ${count} (${this.reason})`;
    try {
      if (folder === undefined) throw new Error('there is no folder to store them in');
      await this.copyInto(folder);
      await writeEntry();
      for (const name of [ENGINE_FILE, SPOOLED_OTLP_FILE]) await rm(join(folder, name), { force: true });
      notices.say(`${what}; they are left in ${folder}: ${next}`);
      return true;
    } catch {
      notices.say(what);
      // Nobody has them any more: the run waits for them no longer.
      for (const { start } of this.waiting)
        await registry.endArtifacts(start.stepId, this.reason).catch(() => undefined);
      return false;
    }
  }

  private async saveOutput(): Promise<void> {
    const { configuration, environment, folder, notices } = this.facts;
    if (folder === undefined) return;
    try {
      const maxBytes = configuration['max-artifact-bytes'];
      this.outputs = await this.output.save(folder, { maxBytes, environment });
    } catch (error) {
      notices.say(`the output of the command is not kept: ${reasonOf(error)}`);
    }
  }

  private targetFolder(): Promise<string | undefined> {
    const { command, context } = this.facts;
    return findTargetFolder(readEngineSwitches(command, context.environment), context.workingDir);
  }
}

/** Nothing is said of uploads that take less, in milliseconds; then a line so often, where there is no terminal. */
const FIRST_LINE_MS = 3_000;
const LINE_MS = 15_000;

/** Shows how far an upload is that takes a while: a bar on a terminal, a line now and then elsewhere. */
class UploadProgress {
  private readonly startMs: number;
  private saidMs: number;
  private readonly bar = lazy(() => this.begin());
  private doneCount = 0;

  constructor(
    private readonly totalCount: number,
    private readonly facts: CommandFacts,
  ) {
    this.startMs = facts.context.clock.monotonicMs();
    this.saidMs = this.startMs;
  }

  show(doneCount: number): void {
    const { context, notices, options } = this.facts;
    const nowMs = context.clock.monotonicMs();
    this.doneCount = doneCount;
    if (options.isQuiet || nowMs - this.startMs < FIRST_LINE_MS) return;
    if (context.isStderrTerminal) {
      // Whatever keeps it from being shown, the upload goes on.
      this.bar
        .get()
        .then((bar) => bar.update(this.doneCount))
        .catch(() => undefined);
    } else if (nowMs - this.saidMs >= (this.saidMs === this.startMs ? FIRST_LINE_MS : LINE_MS)) {
      this.saidMs = nowMs;
      notices.say(`uploading artifacts: ${doneCount} of ${this.totalCount}`);
    }
  }

  /** Removes the bar. */
  end(): void {
    void this.bar.ifNeeded().then((bar) => bar?.stop());
  }

  private async begin(): Promise<SingleBar> {
    const { SingleBar } = await import('cli-progress');
    const bar = new SingleBar({
      stream: this.facts.context.stderr,
      format: 'run-bridge: uploading artifacts {bar} {value} of {total}',
      hideCursor: true,
      clearOnComplete: true,
      barsize: 30,
      fps: 5,
      // Signals belong to src/main.ts.
      gracefulExit: false,
    });
    bar.start(this.totalCount, this.doneCount);
    return bar;
  }
}

/** What is read of a project's file, in bytes: 1 MiB. */
const MAX_PROJECT_BYTES = 1024 * 1024;
const DEFAULT_TARGET = 'target';

/**
 * The folder that the engine writes what it makes into: `--target-path`, DBT_TARGET_PATH, the project's `target-path`, else
 * `target`; a relative one is meant from the project's folder, as the engine means it. `undefined` where there is no project,
 * so that another tool's `target` is left alone, or where its file leaves the path to a template.
 */
export async function findTargetFolder(switches: EngineSwitches, workingDir: string): Promise<string | undefined> {
  const project = findProjectFolder(switches, workingDir);
  if (switches.targetPath !== undefined) return resolve(project ?? workingDir, switches.targetPath);
  if (project === undefined) return undefined;
  const text = await readStart(join(project, PROJECT_FILE));
  const path = text === undefined ? undefined : await targetPathIn(text);
  return path === null || text === undefined ? undefined : resolve(project, path ?? DEFAULT_TARGET);
}

/** `null` for a path that is only known once the engine has filled in a template. */
async function targetPathIn(text: string): Promise<string | null | undefined> {
  // Most projects do not say it, and need no YAML read for that.
  if (!text.includes('target-path')) return undefined;
  const { parse } = await import('yaml');
  try {
    const document: unknown = parse(text, { logLevel: 'silent' });
    const isMap = typeof document === 'object' && document !== null && 'target-path' in document;
    const path = isMap ? document['target-path'] : undefined;
    if (typeof path !== 'string' || path === '') return undefined;
    return path.includes('{{') ? null : path;
  } catch {
    // The engine has said so already.
    return undefined;
  }
}

async function readStart(path: string): Promise<string | undefined> {
  try {
    const file = await open(path, 'r');
    try {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(MAX_PROJECT_BYTES), 0, MAX_PROJECT_BYTES, 0);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    return undefined;
  }
}
