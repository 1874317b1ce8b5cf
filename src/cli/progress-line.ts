import { SingleBar } from 'cli-progress';
import type { ProcessContext } from './command.js';

/** How far a reading has come. */
export interface ReadingProgress {
  readonly bytesRead: number;
  /** 0 when unknown. */
  readonly totalBytes: number;
  readonly recordCount: number;
}

/** A work this small is over before a bar would help, in bytes. */
const MIN_BYTES = 4 * 1024 * 1024;

/** A progress bar on a terminal's standard error; nothing at all in a pipe, or for small files. */
export class ProgressLine {
  private bar: SingleBar | undefined;

  constructor(private readonly context: Pick<ProcessContext, 'stderr' | 'isStderrTerminal'>) {}

  show({ bytesRead, totalBytes, recordCount }: ReadingProgress): void {
    if (!this.context.isStderrTerminal || totalBytes < MIN_BYTES) return;
    this.bar ??= this.begin(totalBytes);
    this.bar.update(bytesRead, { records: recordCount });
  }

  /** Removes the bar, so that what follows starts on a clean line. */
  end(): void {
    this.bar?.stop();
  }

  private begin(totalBytes: number): SingleBar {
    const bar = new SingleBar({
      stream: this.context.stderr,
      format: '{bar} {percentage}%  {records} records  {eta_formatted} left',
      hideCursor: true,
      clearOnComplete: true,
      barsize: 30,
      fps: 5,
      // Signals belong to src/main.ts.
      gracefulExit: false,
    });
    bar.start(totalBytes, 0, { records: 0 });
    return bar;
  }
}
