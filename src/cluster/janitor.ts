import type { Clock } from '../core/clock.js';
import type { Component } from '../core/component.js';
import { FixedDelayTask } from '../core/fixed-delay-task.js';
import type { Logger } from '../core/logger.js';
import { reasonOf } from '../core/reason-of.js';
import type { ObjectStore } from '../storage/bucket/object-store.js';
import type { ClusterStores } from '../storage/cluster/cluster-stores.js';

/** What the janitor works with. */
export interface JanitorDeps {
  readonly stores: ClusterStores;
  readonly bucket: Pick<ObjectStore, 'list' | 'remove'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

const CLEAN_MS = 10_000;
/** Objects that are removed at a time. */
const OBJECTS_AT_A_TIME = 1_000;

/** Removes from the bucket what nobody needs any more: objects of the journal whose parts are all stored, and those that dead processes never had counted. */
export class Janitor implements Component {
  readonly name = 'janitor of the journal';
  private readonly repeated: FixedDelayTask;

  constructor(private readonly deps: JanitorDeps) {
    const { clock, logger } = deps;
    const onError = (error: unknown) =>
      logger.warn({ error: reasonOf(error) }, 'failed to clean up the bucket; retrying');
    this.repeated = new FixedDelayTask(CLEAN_MS, clock, () => this.clean(), onError);
  }

  async start(): Promise<void> {
    this.repeated.start();
  }

  async shutdown(): Promise<void> {
    await this.repeated.stop();
  }

  /** Removes what can be removed now. @throws ArtifactError, StoreError */
  async clean(): Promise<void> {
    const { bucket, stores } = this.deps;
    const { journal } = stores;
    for (;;) {
      const keys = await journal.listUnneeded(OBJECTS_AT_A_TIME);
      if (keys.length === 0) break;
      await bucket.remove(keys);
      await journal.forget(keys);
      if (keys.length < OBJECTS_AT_A_TIME) break;
    }
    for (const processId of await stores.members.bury()) await this.forget(processId);
  }

  /** A dead process has nothing counted any more; what it had counted stays until it is stored. */
  private async forget(processId: string): Promise<void> {
    const { bucket, stores } = this.deps;
    if ((await stores.traces.listOf(processId)).length > 0) return;
    const keys = await bucket.list(`journal/${processId}/`);
    const known = await stores.journal.known(keys);
    await bucket.remove(keys.filter((key) => !known.has(key)));
    await stores.members.forget([processId]);
  }
}
