import type { Component } from './component.js';

/** Components that do not depend on each other: they are shut down at the same time. */
export class ComponentGroup implements Component {
  constructor(
    readonly name: string,
    private readonly components: readonly Component[],
  ) {}

  /** When one cannot start, the others are shut down again. @throws what that component threw. */
  async start(): Promise<void> {
    try {
      for (const component of this.components) await component.start();
    } catch (error) {
      await this.shutdown(AbortSignal.abort());
      throw error;
    }
  }

  /** @throws AggregateError of all failures, at the end. */
  async shutdown(deadline: AbortSignal): Promise<void> {
    const ends = await Promise.allSettled(this.components.map((component) => component.shutdown(deadline)));
    const errors = ends.flatMap((end): unknown[] => (end.status === 'rejected' ? [end.reason] : []));
    if (errors.length > 0) throw new AggregateError(errors, errors.map(String).join('; '));
  }
}
