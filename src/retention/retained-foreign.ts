import type { EndedSegment, ForeignSegments } from '../sink/foreign-segments.js';
import type { CursorStore, ForeignCursor } from '../store/cursor-store.js';
import type { Removable, RetainedKind, RetentionLimits } from './retained-kind.js';

/** What it works with. */
export interface RetainedForeignDeps {
  readonly segments: Pick<ForeignSegments, 'ended' | 'turn' | 'remove'>;
  readonly cursors: Pick<CursorStore, 'findForeign'>;
  /** Names of the destinations that there are. */
  readonly destinations: readonly string[];
  /** What a destination has not taken for so long is given up; `null` for never. In milliseconds. */
  readonly maxBacklogMs: number | null;
  /** Wall-clock time in milliseconds. */
  readonly nowUnixMs: () => number;
}

/** A file holds no more than what came in so long, in milliseconds: else one that is hardly written to would be kept for years. */
const SEGMENT_MS = 86_400_000;

/** Telemetry of other services, in the files that it is in. */
export class RetainedForeign implements RetainedKind {
  readonly name = 'foreign';
  readonly noun = 'files';

  constructor(
    readonly limits: RetentionLimits,
    private readonly deps: RetainedForeignDeps,
  ) {}

  async totalBytes(): Promise<number> {
    return (await this.deps.segments.ended()).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  }

  async *removables(endedUntilUnixMs: number): AsyncGenerator<Removable> {
    const { segments, nowUnixMs } = this.deps;
    await segments.turn(nowUnixMs() - SEGMENT_MS);
    const cursors = await this.cursors();
    for (const segment of await segments.ended()) {
      if (segment.writtenUnixMs > endedUntilUnixMs || this.isWaitedFor(segment, cursors)) continue;
      yield {
        count: 1,
        endedUnixMs: segment.writtenUnixMs,
        measure: async () => ({ fileCount: 1, sizeBytes: segment.sizeBytes }),
        remove: async () => {
          await segments.remove(segment);
          return true;
        },
      };
    }
  }

  /** How far each destination is; asked once a sweep, in which they only go on. */
  private cursors(): Promise<readonly (ForeignCursor | undefined)[]> {
    const { cursors, destinations } = this.deps;
    return Promise.all(destinations.map((destination) => cursors.findForeign(destination)));
  }

  /** Whether a destination has not got all of it. */
  private isWaitedFor(
    { segment, sizeBytes, writtenUnixMs }: EndedSegment,
    cursors: readonly (ForeignCursor | undefined)[],
  ): boolean {
    const { maxBacklogMs, nowUnixMs } = this.deps;
    if (maxBacklogMs !== null && writtenUnixMs <= nowUnixMs() - maxBacklogMs) return false;
    return cursors.some((cursor) => {
      // One that has none has begun with nothing.
      const isBehind = cursor === undefined || cursor.segment < segment;
      return isBehind || (cursor.segment === segment && cursor.offset < sizeBytes);
    });
  }
}
