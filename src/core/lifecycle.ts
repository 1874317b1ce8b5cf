/** A part of the program with a lifecycle. The composition root starts components destinations first and shuts them down sources first, so that nothing is sent to a stopped component. */
export interface Component {
  readonly name: string;
  start(): Promise<void>;
  /** Finishes what was accepted. When `deadline` aborts, returns as soon as it safely can; what is left stays on disk. */
  shutdown(deadline: AbortSignal): Promise<void>;
}

/** Starts components in order and shuts them down in reverse order. */
export class Lifecycle {
  private readonly started: Component[] = [];

  /** @param components destination-first. */
  constructor(private readonly components: readonly Component[]) {}

  /** Starts all components; if one fails, those before it are shut down again. @throws what that component threw */
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

  /** Shuts down all started components, whether others fail or not. @throws AggregateError of all failures, at the end */
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

/** A group of independent components, which are shut down concurrently. */
export class ComponentGroup implements Component {
  constructor(
    readonly name: string,
    private readonly components: readonly Component[],
  ) {}

  /** Starts all components; if one fails, all are shut down again. @throws what that component threw */
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
