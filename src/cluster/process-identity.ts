import type { Fence } from '../storage/fence.js';

/** Who this process is among those that share a database: another one after it counted as dead. */
export class ProcessIdentity implements Fence {
  processId: string;

  /** @param folderId of the data folder, which stays @param newId makes ids that nobody has */
  constructor(
    readonly folderId: string,
    private readonly newId: () => string,
  ) {
    this.processId = newId();
  }

  /** The life of before is over. */
  beginAnew(): void {
    this.processId = this.newId();
  }
}
