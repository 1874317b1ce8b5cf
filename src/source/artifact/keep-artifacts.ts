import { reasonOf } from '../../component/reason-of.js';
import { ArtifactError } from '../../store/artifact/artifact-error.js';
import type { StepPlace } from '../../store/step-start.js';
import type { ArtifactSink } from './artifact-sink.js';
import type { FoundArtifact } from './found-artifact.js';

/** What became of artifacts. */
export interface KeptArtifacts {
  /** Those that may be tried again. */
  readonly left: readonly FoundArtifact[];
  /** Those that will never be taken, for example because they are too large. */
  readonly refused: readonly FoundArtifact[];
  /** What the first of both failed with, in a sentence; `null` where all are kept. */
  readonly reason: string | null;
}

/** Artifacts under way at a time. */
const AT_A_TIME = 6;

/**
 * Brings artifacts to where they are kept, a few at a time and in their order. Where one fails for a reason that goes for
 * all (nobody answers, the disk is full), the others are left at once. Never throws.
 */
export async function keepArtifacts(
  { runId, stepIndex }: StepPlace,
  artifacts: readonly FoundArtifact[],
  sink: ArtifactSink,
  signal: AbortSignal,
): Promise<KeptArtifacts> {
  const waiting = [...artifacts];
  const left: FoundArtifact[] = [];
  const refused: FoundArtifact[] = [];
  let reason: string | null = null;
  let isHopeless = false;
  const work = async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      if (isHopeless || signal.aborted) {
        reason ??= 'there was no time for them';
        left.push(next);
        continue;
      }
      try {
        await sink.put({ runId, stepIndex, path: next.path }, next.file, signal);
      } catch (error) {
        if (isGone(error)) continue;
        reason ??= signal.aborted ? 'there was no time for them' : reasonOf(error);
        const isItsOwnFault =
          error instanceof ArtifactError && (error.code === 'tooLarge' || error.code === 'conflict');
        if (!isItsOwnFault) isHopeless = true;
        (isItsOwnFault ? refused : left).push(next);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, work));
  return { left, refused, reason };
}

/** The next command has removed or replaced it meanwhile. */
function isGone(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error && 'code' in error && error.code === 'ENOENT';
}
