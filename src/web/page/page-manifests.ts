import type { ArtifactPath } from '../../storage/artifacts.js';
import { type Manifest, StepManifests } from '../../storage/manifest.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import type { PageDeps } from './page-deps.js';

/** Reads manifests of steps for all pages, which share those that were read last. */
export class PageManifests {
  private readonly manifests = new StepManifests();

  constructor(private readonly artifacts: PageDeps['artifacts']) {}

  /** Returns the manifest of a step; `null` if it has none. @throws ArtifactError */
  async of(step: CatalogStep): Promise<Manifest | null> {
    const found = await this.manifests.read({
      ...{ runId: step.runId, stepIndex: step.index },
      stat: (path: ArtifactPath) => this.artifacts.stat(step, path),
      open: (path: ArtifactPath) => this.artifacts.open(step, path),
    });
    return found ?? null;
  }
}
