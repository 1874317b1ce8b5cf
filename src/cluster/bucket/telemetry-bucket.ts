import { parseTraceId, type TraceId } from '../../record/telemetry-record.js';
import { type ObjectStore, tracePrefix } from '../../storage/bucket/object-store.js';
import type { JournalStore } from '../../storage/journal-store.js';
import type { Removal, RetainedSize, TelemetryStorage } from '../../storage/retention-store.js';

/** Dependencies of `TelemetryBucket`. */
export interface TelemetryBucketDeps {
  readonly openBucket: () => Promise<Pick<ObjectStore, 'list' | 'remove'>>;
  readonly traces: Pick<JournalStore, 'known' | 'usage'>;
}

/** The files of traces in the bucket that several processes share. Nobody lists runs there, so a run without rows is not found. */
export class TelemetryBucket implements TelemetryStorage {
  constructor(private readonly deps: TelemetryBucketDeps) {}

  async totalBytes(): Promise<number> {
    return (await this.deps.traces.usage()).sizeBytes;
  }

  usageOf(traceIds: readonly TraceId[]): Promise<RetainedSize> {
    return this.deps.traces.usage(traceIds);
  }

  async hide(): Promise<void> {}

  async remove({ kind, id }: Removal): Promise<boolean> {
    const bucket = await this.deps.openBucket();
    if (kind === 'object') await bucket.remove([id]);
    else await this.removeLeft(bucket, id);
    return true;
  }

  /** Removes the files of a trace that no row names, left by processes that died during an upload. */
  private async removeLeft(bucket: Pick<ObjectStore, 'list' | 'remove'>, id: string): Promise<void> {
    const traceId = parseTraceId(id);
    if (traceId === undefined) return;
    const keys = await bucket.list(tracePrefix(traceId));
    // Checked after listing, so that files of a trace that exists again are not removed.
    if (keys.length === 0 || (await this.deps.traces.known([traceId])).has(traceId)) return;
    await bucket.remove(keys);
  }
}
