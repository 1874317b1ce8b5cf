import type { LogFields, Logger } from '../../src/core/logger.js';

/** A line that was logged. */
export interface LoggedLine {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly fields: LogFields;
  readonly message: string;
}

/** Keeps what is logged. */
export class RecordingLogger implements Logger {
  readonly lines: LoggedLine[] = [];
  private waiting: { matches: (line: LoggedLine) => boolean; resolve: (line: LoggedLine) => void }[] = [];

  debug(fields: LogFields, message: string): void {
    this.keep({ level: 'debug', fields, message });
  }
  info(fields: LogFields, message: string): void {
    this.keep({ level: 'info', fields, message });
  }
  warn(fields: LogFields, message: string): void {
    this.keep({ level: 'warn', fields, message });
  }
  error(fields: LogFields, message: string): void {
    this.keep({ level: 'error', fields, message });
  }

  /** Resolves with the next line that matches. */
  next(matches: (line: LoggedLine) => boolean): Promise<LoggedLine> {
    return new Promise((resolve) => this.waiting.push({ matches, resolve }));
  }

  private keep(line: LoggedLine): void {
    this.lines.push(line);
    const matching = this.waiting.filter((waiter) => waiter.matches(line));
    this.waiting = this.waiting.filter((waiter) => !matching.includes(waiter));
    for (const waiter of matching) waiter.resolve(line);
  }
}
