import { readableBytes } from '../../component/readable-bytes.js';
import { ArtifactError } from '../../store/artifact/artifact-error.js';
import type { ArtifactKey, ArtifactStore } from '../../store/artifact/artifact-store.js';

/** What a step may have. */
export interface StepQuotaConfig {
  /** Artifacts. */
  readonly maxCount: number;
  /** All of them together, in bytes. */
  readonly maxTotalBytes: number;
}

/** Steps whose artifacts are remembered; of more than these, the one that was asked about longest ago is counted again. */
const MAX_STEPS = 500;

/** What a step has. */
interface Tally {
  readonly sizes: Map<string, number>;
  totalBytes: number;
}

/** Bounds what is uploaded for a step: its artifacts are counted once, and then as they come to this process. */
export class StepQuota {
  private readonly tallies = new Map<string, Promise<Tally>>();

  constructor(
    private readonly config: StepQuotaConfig,
    private readonly openStore: () => Promise<Pick<ArtifactStore, 'list'>>,
  ) {}

  /** @throws ArtifactError `tooMany` where the step may not have so much more. */
  async check(key: ArtifactKey, sizeBytes: number): Promise<void> {
    const { sizes, totalBytes } = await this.tallyOf(key);
    const { maxCount, maxTotalBytes } = this.config;
    if (!sizes.has(key.path) && sizes.size >= maxCount) {
      throw new ArtifactError('tooMany', `the step has ${maxCount} artifacts, which is all that one may have`);
    }
    if (totalBytes - (sizes.get(key.path) ?? 0) + sizeBytes > maxTotalBytes) {
      const limit = readableBytes(maxTotalBytes);
      throw new ArtifactError('tooMany', `with this, the step's artifacts would be larger than ${limit} together`);
    }
  }

  /** One was kept. */
  async add(key: ArtifactKey, sizeBytes: number): Promise<void> {
    const tally = await this.tallyOf(key);
    tally.totalBytes += sizeBytes - (tally.sizes.get(key.path) ?? 0);
    tally.sizes.set(key.path, sizeBytes);
  }

  private tallyOf({ runId, stepIndex }: ArtifactKey): Promise<Tally> {
    const name = `${runId}/${stepIndex}`;
    const tally = this.tallies.get(name) ?? this.count(runId, stepIndex);
    this.tallies.delete(name);
    for (const oldest of this.tallies.keys()) {
      if (this.tallies.size < MAX_STEPS) break;
      this.tallies.delete(oldest);
    }
    this.tallies.set(name, tally);
    // What could not be counted is counted the next time.
    tally.catch(() => this.tallies.delete(name));
    return tally;
  }

  private async count(runId: number, stepIndex: number): Promise<Tally> {
    const artifacts = await (await this.openStore()).list(runId, stepIndex);
    const sizes = new Map<string, number>(artifacts.map(({ path, sizeBytes }) => [path, sizeBytes]));
    return { sizes, totalBytes: artifacts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  }
}
