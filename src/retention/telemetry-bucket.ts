import { parseTraceId, type TraceId } from '../record/ids.js';
import type { ObjectStore } from '../store/bucket/object-store.js';
import type { SharedTraceStore } from '../store/cluster/shared-trace-store.js';
import { tracePrefix } from '../store/cluster/trace-prefix.js';
import type { Removal } from '../store/retention-store.js';
import type { RetainedSize } from './retained-kind.js';
import type { TelemetryPlace } from './telemetry-place.js';

/** What it works with. */
export interface TelemetryBucketDeps {
  readonly openBucket: () => Promise<Pick<ObjectStore, 'list' | 'remove'>>;
  readonly traces: Pick<SharedTraceStore, 'find' | 'usage'>;
}

/** Files of traces in the bucket that several processes share. Nobody lists runs there: with its rows a run is gone. */
export class TelemetryBucket implements TelemetryPlace {
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

  /** What nothing ever named: processes that died while they uploaded left it. */
  private async removeLeft(bucket: Pick<ObjectStore, 'list' | 'remove'>, id: string): Promise<void> {
    const traceId = parseTraceId(id);
    if (traceId === undefined) return;
    const keys = await bucket.list(tracePrefix(traceId));
    // Looked at after the list: what comes with a trace that is there again is not in it, or is not touched.
    if (keys.length === 0 || (await this.deps.traces.find(traceId)) !== undefined) return;
    await bucket.remove(keys);
  }
}
