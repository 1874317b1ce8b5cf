import type { Clock } from '../core/clock.js';
import { reasonOf } from '../core/errors.js';
import { setLatest } from '../core/lists.js';
import type { Logger } from '../core/logger.js';
import type { Manifest, ManifestReader, ManifestRun } from '../storage/manifest.js';

/** Jobs of which the manifest of an earlier run is kept, and for how long, in milliseconds: 10 minutes … */
const MAX_JOBS = 4;
const KEPT_MS = 600_000;
/** … and for how long that there was none. */
const NONE_KEPT_MS = 10_000;

interface Kept {
  readonly manifest: Promise<Manifest | undefined>;
  /** The run that it was read for: it may be later than runs before that one. */
  readonly runId: number;
  untilMs: number;
}

/** What the nodes of runs that are exported depend on, by the manifests that are stored: destinations share them. */
export class RunManifests {
  /** By account, job and environment. */
  private readonly earlier = new Map<string, Kept>();

  constructor(
    private readonly deps: {
      readonly reader: Pick<ManifestReader, 'ofRun' | 'ofEarlier'>;
      readonly clock: Pick<Clock, 'monotonicMs'>;
      readonly logger: Logger;
    },
  ) {}

  /** Reads the manifest of a run; that of an earlier run of its job while it has none, as while it is under way. `undefined` where none can be read. */
  async of(run: ManifestRun): Promise<Manifest | undefined> {
    try {
      return (await this.deps.reader.ofRun(run)) ?? (await this.ofEarlier(run));
    } catch (error) {
      this.deps.logger.warn(
        { error: reasonOf(error) },
        'failed to read a manifest; spans have no links to upstream nodes',
      );
      return undefined;
    }
  }

  private async ofEarlier(run: ManifestRun): Promise<Manifest | undefined> {
    const { reader, clock } = this.deps;
    const name = `${run.accountId} ${run.jobId} ${run.environmentId}`;
    const nowMs = clock.monotonicMs();
    const kept = this.earlier.get(name);
    if (kept !== undefined && nowMs < kept.untilMs && kept.runId <= run.runId) return kept.manifest;
    const fresh: Kept = { manifest: reader.ofEarlier(run), runId: run.runId, untilMs: nowMs + KEPT_MS };
    setLatest(this.earlier, name, fresh, MAX_JOBS);
    let found: Manifest | undefined;
    try {
      found = await fresh.manifest;
      return found;
    } finally {
      if (found === undefined) fresh.untilMs = nowMs + NONE_KEPT_MS;
    }
  }
}
