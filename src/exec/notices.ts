import type { Writable } from 'node:stream';

/** What `exec` has to say beside the command's own output: little, a line each, and each line once. */
export class Notices {
  private readonly said = new Set<string>();

  constructor(
    private readonly stderr: Writable,
    private readonly isQuiet: boolean,
  ) {}

  say(message: string): void {
    const line = message.replaceAll(/\s*\n\s*/g, ' ');
    if (this.isQuiet || this.said.has(line)) return;
    this.said.add(line);
    this.stderr.write(`run-bridge: ${line}\n`);
  }
}
