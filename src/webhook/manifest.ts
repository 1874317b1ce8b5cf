import type { ArtifactStore } from '../storage/artifacts.js';
import { MANIFEST, type Manifest, readManifest } from '../storage/manifest.js';
import type { RunCatalog } from '../storage/run-catalog.js';

/** The run whose nodes are asked for. */
export interface ManifestRun {
  readonly accountId: number;
  readonly runId: number;
  readonly jobId: number;
  readonly environmentId: number;
}

/** What manifests are found with. */
export interface ManifestReaderDeps {
  readonly catalog: Pick<RunCatalog, 'stepsOf' | 'listRuns'>;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'stat' | 'open'>>;
}

/** Earlier runs that are looked through for a manifest. */
const MAX_EARLIER_RUNS = 10;
/** Manifests that are remembered. */
const MAX_KEPT = 4;

/** Reads the manifests that runs left. */
export class ManifestReader {
  /** By run, step and version. */
  private readonly kept = new Map<string, Manifest>();

  constructor(private readonly deps: ManifestReaderDeps) {}

  /**
   * The manifest of a run; that of the latest earlier run of its job and environment while it has none, as when it has just
   * failed. `undefined` where none of the last ten left one. @throws ArtifactError
   */
  async read({ accountId, runId, jobId, environmentId }: ManifestRun): Promise<Manifest | undefined> {
    const { catalog } = this.deps;
    const own = await this.ofRun(accountId, runId);
    if (own !== undefined) return own;
    const query = { jobId, environmentId, orderBy: 'id', isDescending: true, offset: 0 } as const;
    const { items } = await catalog.listRuns(accountId, { ...query, limit: MAX_EARLIER_RUNS });
    for (const { id } of items) {
      if (id >= runId) continue;
      const earlier = await this.ofRun(accountId, id);
      if (earlier !== undefined) return earlier;
    }
    return undefined;
  }

  private async ofRun(accountId: number, runId: number): Promise<Manifest | undefined> {
    const store = await this.deps.openArtifacts();
    for (const { index } of (await this.deps.catalog.stepsOf(accountId, [runId])).toReversed()) {
      const key = { runId, stepIndex: index, path: MANIFEST };
      const found = await store.stat(key);
      if (found === undefined) continue;
      const name = `${runId} ${index} ${found.etag}`;
      const known = this.kept.get(name);
      if (known !== undefined) return known;
      const opened = await store.open(key);
      if (opened === undefined) continue;
      const manifest = await readManifest(opened.content);
      const [oldest] = this.kept.keys();
      if (this.kept.size >= MAX_KEPT && oldest !== undefined) this.kept.delete(oldest);
      this.kept.set(name, manifest);
      return manifest;
    }
    return undefined;
  }
}
