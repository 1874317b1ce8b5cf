/**
 * Gives those who export their turns: one each round of the event loop, behind what came in and what is to be answered, whoever exports how much. A turn
 * is a bounded piece of work, so a backlog of any length keeps nobody waiting for long.
 */
export class ExportTurns {
  private readonly waiting: (() => void)[] = [];
  private isDue = false;

  /** Resolves when it is the caller's turn; what it does then, it does before it waits for anything. */
  next(): Promise<void> {
    return new Promise((resolve) => {
      this.waiting.push(resolve);
      this.giveLater();
    });
  }

  private giveLater(): void {
    if (this.isDue) return;
    this.isDue = true;
    // Set within such a callback it is called in the next round.
    setImmediate(() => {
      this.isDue = false;
      this.waiting.shift()?.();
      if (this.waiting.length > 0) this.giveLater();
    });
  }
}
