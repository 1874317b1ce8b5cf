import type { Component } from './component.js';

/** Starts components in their order and shuts them down in the opposite one. */
export class Lifecycle {
  private readonly started: Component[] = [];

  /** @param components destination-first. */
  constructor(private readonly components: readonly Component[]) {}

  /** When one cannot start, those before it are shut down again. @throws what that component threw. */
  async start(): Promise<void> {
    for (const component of this.components) {
      try {
        await component.start();
      } catch (error) {
        await this.shutdown(AbortSignal.abort());
        throw error;
      }
      this.started.push(component);
    }
  }

  /** A component that fails to end does not prevent the others from ending. @throws AggregateError of all failures, at the end. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    const errors: unknown[] = [];
    for (let last = this.started.pop(); last !== undefined; last = this.started.pop()) {
      const { name } = last;
      await last.shutdown(deadline).catch((error: unknown) => {
        errors.push(new Error(`${name} did not end cleanly: ${String(error)}`, { cause: error }));
      });
    }
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join('; '));
  }
}
