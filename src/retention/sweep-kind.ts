import type { RetainedKind } from './retained-kind.js';

/** What was removed of a kind, or would be. */
export interface SweepResult {
  readonly kind: string;
  /** How many of the kind's things. */
  readonly count: number;
  readonly fileCount: number;
  readonly sizeBytes: number;
  /** What could not be brought below its limit of size, in bytes: all that is left is under way, too new or waited for. */
  readonly excessBytes: number;
}

/** How a kind is gone through. */
export interface SweepOptions {
  readonly nowUnixMs: number;
  /** Only counts. */
  readonly isDry: boolean;
  /** Ends it between two things. */
  readonly signal: AbortSignal;
}

/**
 * What ended so lately stays whatever its size, in milliseconds: late records of it may be on their way, and whoever waited
 * for it should find it.
 */
export const KEPT_MS = 600_000;

/** Removes of a kind what is too old, and of what is too much the oldest. */
export async function sweepKind(kind: RetainedKind, options: SweepOptions): Promise<SweepResult> {
  const { nowUnixMs, isDry, signal } = options;
  const { maxAgeMs, maxBytes } = kind.limits;
  const oldUnixMs = maxAgeMs === null ? Number.NEGATIVE_INFINITY : nowUnixMs - maxAgeMs;
  let excessBytes = maxBytes === null ? 0 : (await kind.totalBytes(signal)) - maxBytes;
  const total = { count: 0, fileCount: 0, sizeBytes: 0 };
  const untilUnixMs = excessBytes > 0 ? Math.max(oldUnixMs, nowUnixMs - KEPT_MS) : oldUnixMs;
  if (untilUnixMs === Number.NEGATIVE_INFINITY) return { kind: kind.name, ...total, excessBytes: 0 };
  for await (const removable of kind.removables(untilUnixMs)) {
    if (signal.aborted) break;
    if (removable.endedUnixMs > oldUnixMs && excessBytes <= 0) continue;
    const { fileCount, sizeBytes } = await removable.measure();
    if (!isDry && !(await removable.remove())) continue;
    excessBytes -= sizeBytes;
    total.count += removable.count;
    total.fileCount += fileCount;
    total.sizeBytes += sizeBytes;
  }
  return { kind: kind.name, ...total, excessBytes: Math.max(0, excessBytes) };
}
