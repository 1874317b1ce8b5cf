import { type Clock, pause, RetryPolicy } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import type { StepRegistry } from '../run/step-registry.js';
import { ArtifactError, type ArtifactErrorCode, type ArtifactSink } from '../storage/artifacts.js';
import type { StepPosition, StepStart } from '../storage/steps.js';
import type { FoundArtifact } from './found-artifacts.js';

/** Artifacts of one step that are to be brought to where artifacts are kept. */
export interface Upload {
  readonly start: StepStart;
  readonly artifacts: readonly FoundArtifact[];
}

/** What became of artifacts. */
export interface KeptArtifacts {
  /** Those that may be tried again. */
  readonly left: readonly FoundArtifact[];
  /** Those that will never be taken, for example because they are too large. */
  readonly refused: readonly FoundArtifact[];
  /** What the first of both failed with, in a sentence; `null` where all are kept. */
  readonly reason: string | null;
}

/** How artifacts are kept. */
export interface KeepingOptions {
  readonly sink: ArtifactSink;
  readonly clock: Clock;
  /** Ends it at once. */
  readonly signal: AbortSignal;
  /** Where nothing can be kept, it is tried again until nothing was for so long, in milliseconds. 0: not at all. */
  readonly patienceMs: number;
  /** Failures that are of one artifact alone, which will never be taken. Default: `tooLarge` and `conflict`. */
  readonly ownFaults?: ReadonlySet<ArtifactErrorCode>;
  /** Called when one is kept. */
  readonly onKept?: (artifact: FoundArtifact) => Promise<void>;
  /** Told how many are done, whenever one is. */
  readonly onProgress?: (doneCount: number) => void;
}

/** Artifacts under way at a time. */
const AT_A_TIME = 6;
/** The pauses after rounds in which nothing could be kept. */
const BACKOFF = new RetryPolicy({ baseMs: 250, maxMs: 5_000, maxRetryAfterMs: 5_000 });
const OWN_FAULTS: ReadonlySet<ArtifactErrorCode> = new Set(['tooLarge', 'conflict']);

/**
 * Says which artifacts come. To be said before the end of their steps: the run is not over before they can be downloaded.
 * @throws StepRegistryError
 */
export async function announceUploads(
  registry: Pick<StepRegistry, 'expectArtifacts'>,
  uploads: readonly Upload[],
): Promise<void> {
  for (const { start, artifacts } of uploads) {
    const paths = artifacts.map(({ path }) => path);
    if (paths.length > 0) await registry.expectArtifacts(start.stepId, paths);
  }
}

/**
 * Uploads what was announced, and says when no more comes; where some are left, they may still come, and the process that brings
 * them says it. @throws StepRegistryError
 */
export async function upload(
  registry: Pick<StepRegistry, 'endArtifacts'>,
  { start, artifacts }: Upload,
  position: StepPosition,
  options: KeepingOptions,
): Promise<KeptArtifacts> {
  const kept = await keepArtifacts(position, artifacts, options);
  if (kept.left.length === 0) await registry.endArtifacts(start.stepId, kept.reason);
  return kept;
}

/**
 * Brings artifacts to where they are kept, a few at a time and in their order: as long as it takes, while it goes on. Where
 * one fails for a reason that goes for all (nobody answers, the disk is full), the others wait with it, and are left when
 * nothing was kept for a while. Never throws.
 */
export async function keepArtifacts(
  position: StepPosition,
  artifacts: readonly FoundArtifact[],
  options: KeepingOptions,
): Promise<KeptArtifacts> {
  const { clock, signal, patienceMs, onProgress } = options;
  const refused: FoundArtifact[] = [];
  let left = artifacts;
  let reason: string | null = null;
  let failedRounds = 0;
  let doneCount = 0;
  let doneMs = clock.monotonicMs();
  const onDone = () => {
    doneCount += 1;
    doneMs = clock.monotonicMs();
    failedRounds = 0;
    onProgress?.(doneCount);
  };
  for (;;) {
    const round = await keepOnce(position, left, options, onDone);
    left = round.left;
    refused.push(...round.refused);
    reason = round.reason ?? reason;
    const isHopeless = signal.aborted || clock.monotonicMs() - doneMs >= patienceMs;
    if (left.length === 0 || isHopeless) break;
    failedRounds += 1;
    await pause(clock, BACKOFF.delayMs(failedRounds, null), signal);
  }
  return { left, refused, reason: left.length + refused.length === 0 ? null : reason };
}

async function keepOnce(
  { runId, stepIndex }: StepPosition,
  artifacts: readonly FoundArtifact[],
  { sink, signal, ownFaults = OWN_FAULTS, onKept }: KeepingOptions,
  onDone: () => void,
): Promise<KeptArtifacts> {
  const waiting = [...artifacts];
  const left: FoundArtifact[] = [];
  const refused: FoundArtifact[] = [];
  let reason: string | null = null;
  let isHopeless = false;
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (isHopeless || signal.aborted) {
        reason ??= INTERRUPTED;
        left.push(next);
        continue;
      }
      try {
        await sink.put({ runId, stepIndex, path: next.path }, next.file, signal);
        await onKept?.(next);
        onDone();
      } catch (error) {
        if (isGone(error)) continue;
        reason ??= signal.aborted ? INTERRUPTED : reasonOf(error);
        const isItsOwnFault = error instanceof ArtifactError && ownFaults.has(error.code);
        if (!isItsOwnFault) isHopeless = true;
        (isItsOwnFault ? refused : left).push(next);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return { left, refused, reason };
}

const INTERRUPTED = 'the upload was interrupted';

/** The next command has removed or replaced it meanwhile. */
function isGone(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'code' in error && error.code === 'ENOENT';
}
