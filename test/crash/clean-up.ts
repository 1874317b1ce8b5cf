import { rmSync } from 'node:fs';

/** What a test has to end and remove, whatever comes of it; last begun, first ended. */
export class CleanUp {
  private readonly steps: (() => unknown)[] = [];

  add(step: () => unknown): void {
    this.steps.push(step);
  }

  folder(path: string): void {
    this.add(() => rmSync(path, { recursive: true, force: true }));
  }

  async run(): Promise<void> {
    for (const step of this.steps.splice(0).reverse()) await step();
  }
}
