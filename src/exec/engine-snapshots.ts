import { constants } from 'node:fs';
import { copyFile, lstat, mkdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { groupBy, slices } from '../core/lists.js';
import { invocationIdOf, type TelemetryRecord } from '../record/telemetry-record.js';
import { openRegularFile, STEP_LIMITS } from '../storage/artifacts.js';
import type { CommandFacts } from './command-facts.js';
import type { CommandStep } from './command-steps.js';
import type { FoundArtifact } from './found-artifacts.js';
import { findArtifacts } from './found-artifacts.js';

/** What engine commands that ended had left, in a command's folder. */
const SNAPSHOTS_FOLDER = 'snapshots';
/** All copies of a command together, in bytes: 4 GiB. */
const MAX_COPIED_BYTES = 4 * STEP_LIMITS.maxTotalBytes;
const COPIED_AT_A_TIME = 8;
/** What is read of a document to find out which invocation wrote it, in bytes: its `metadata` stand first. */
const HEAD_BYTES = 4_096;

/** An engine command that ended, by the span of its process. */
export type EndedEngine = Pick<TelemetryRecord, 'traceId' | 'spanId'>;

interface Snapshot {
  /** The engine command that ended; `null` until it is known. */
  engine: EndedEngine | null;
  copies: readonly FoundArtifact[];
}

/**
 * Copies of what each of several engine commands inside a command (make, a script) left, taken when it ends: the next one
 * writes its own in their place, the engine truncates and writes the very files. An engine waits for the answer to its last
 * request before it ends, and it waits until the copies are made.
 */
export class EngineSnapshots {
  private readonly snapshots: Snapshot[] = [];
  private readonly ofRequests = new WeakMap<Uint8Array, Snapshot>();
  /** What the copies are of: when each file was written and how large it was. */
  private readonly stamps = new Map<string, string>();
  private copiedBytes = 0;
  private working: Promise<void> = Promise.resolve();

  /** @param target gives the engine's target folder, `undefined` where there is none */
  constructor(
    private readonly facts: CommandFacts,
    private readonly target: () => Promise<string | undefined>,
  ) {}

  /** Copies what there is before an engine's last request is answered. Never throws. */
  takeBefore(request: Uint8Array): Promise<void> {
    const snapshot: Snapshot = { engine: null, copies: [] };
    this.ofRequests.set(request, snapshot);
    return this.take(snapshot);
  }

  /** Copies what there is when an engine's file says that it ends. Never throws. */
  takeAtEnd(engine: EndedEngine): Promise<void> {
    return this.take({ engine, copies: [] });
  }

  /** Whether copies were made when that request came. */
  has(bytes: Uint8Array): boolean {
    return this.ofRequests.has(bytes);
  }

  /** The request says which engine command ended. */
  bind(bytes: Uint8Array, engine: EndedEngine): void {
    const snapshot = this.ofRequests.get(bytes);
    if (snapshot !== undefined) snapshot.engine ??= engine;
  }

  /**
   * Divides what was found at the end of the command, and the copies, among the engine commands. A document goes to the one
   * that it names (`metadata.invocation_id`), the rest to the one that ended next, and so do the documents of those that
   * share a trace, and with it their id. Of one alone, what was found is its.
   */
  async divide(
    found: readonly FoundArtifact[],
    steps: readonly CommandStep[],
  ): Promise<ReadonlyMap<string, readonly FoundArtifact[]>> {
    await this.working;
    const last = steps.at(-1);
    if (last === undefined || steps.length === 1) return new Map([[last?.start.stepId ?? this.facts.stepId, found]]);
    const ofTraces = groupBy(steps, ({ traceId }) => traceId);
    const ofInvocations = new Map(
      [...ofTraces].flatMap(([traceId, [one, ...others]]) =>
        one === undefined || others.length > 0 ? [] : [[invocationIdOf(traceId), one.start.stepId] as const],
      ),
    );
    const stepOf = ({ traceId, spanId }: EndedEngine) => {
      const possible = ofTraces.get(traceId) ?? [];
      return (possible.find(({ processSpanId }) => processSpanId === spanId) ?? possible.at(-1))?.start.stepId;
    };
    const owned = new Map<string, { readonly stepId: string; readonly artifact: FoundArtifact }>();
    const give = async (artifact: FoundArtifact, otherwise: string) => {
      const named = ofInvocations.get((await invocationIn(artifact)) ?? '');
      const stepId = named ?? otherwise;
      owned.set(`${stepId} ${artifact.path}`, { stepId, artifact });
    };
    let unbound: FoundArtifact[] = [];
    for (const { engine, copies } of this.snapshots) {
      unbound.push(...copies);
      const stepId = engine === null ? undefined : stepOf(engine);
      if (stepId === undefined) continue;
      for (const copy of unbound) await give(copy, stepId);
      unbound = [];
    }
    for (const copy of unbound) await give(copy, last.start.stepId);
    for (const artifact of found) {
      if (this.stamps.get(artifact.path) !== (await stampOf(artifact.file))) await give(artifact, last.start.stepId);
    }
    const divided = groupBy([...owned.values()], ({ stepId }) => stepId);
    return new Map([...divided].map(([stepId, list]) => [stepId, list.map(({ artifact }) => artifact)]));
  }

  /** Removes the copies. @throws what the file system throws. */
  async remove(): Promise<void> {
    const { folder } = this.facts;
    if (folder !== undefined) await rm(join(folder, SNAPSHOTS_FOLDER), { recursive: true, force: true });
  }

  private take(snapshot: Snapshot): Promise<void> {
    this.snapshots.push(snapshot);
    const number = this.snapshots.length;
    this.working = this.working.then(async () => {
      // What could not be copied is found at the end, unless it is no more.
      snapshot.copies = await this.copy(number).catch(() => []);
    });
    return this.working;
  }

  private async copy(number: number): Promise<readonly FoundArtifact[]> {
    const { folder, startedUnixMs, configuration } = this.facts;
    const target = await this.target();
    if (folder === undefined || target === undefined) return [];
    const limits = { ...STEP_LIMITS, maxFileBytes: configuration['max-artifact-bytes'] };
    const { artifacts } = await findArtifacts(target, startedUnixMs, limits);
    const copies: FoundArtifact[] = [];
    for (const some of slices(artifacts, COPIED_AT_A_TIME)) {
      await Promise.all(
        some.map(async ({ path, file, sizeBytes }) => {
          const stamp = await stampOf(file);
          if (stamp === undefined || this.stamps.get(path) === stamp) return;
          this.copiedBytes += sizeBytes;
          if (this.copiedBytes > MAX_COPIED_BYTES) return;
          const copy = join(folder, SNAPSHOTS_FOLDER, String(number), path);
          await mkdir(dirname(copy), { recursive: true, mode: 0o700 });
          // Where the file system can, both share their blocks until one is written.
          await copyFile(file, copy, constants.COPYFILE_FICLONE);
          this.stamps.set(path, stamp);
          copies.push({ path, file: copy, sizeBytes });
        }),
      );
    }
    return copies;
  }
}

/** `undefined` for what is gone, or no file. */
async function stampOf(file: string): Promise<string | undefined> {
  const stats = await lstat(file, { bigint: true }).catch(() => undefined);
  return stats?.isFile() === true ? `${stats.mtimeNs} ${stats.size}` : undefined;
}

/** The invocation that a document of the target folder itself says it is of. */
async function invocationIn({ path, file }: FoundArtifact): Promise<string | undefined> {
  if (path.includes('/')) return undefined;
  const head = await readHead(file).catch(() => '');
  return /"invocation_id"\s*:\s*"([0-9a-f-]{36})"/i.exec(head)?.[1]?.toLowerCase();
}

async function readHead(file: string): Promise<string> {
  const handle = await openRegularFile(file);
  try {
    const { buffer, bytesRead } = (await handle?.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)) ?? {};
    return buffer?.toString('utf8', 0, bytesRead) ?? '';
  } finally {
    await handle?.close();
  }
}
