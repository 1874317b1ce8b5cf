import type { TraceId } from '../record/ids.js';
import type { RunSummary } from '../run/run-summary.js';
import type { FromThread } from './messages.js';

type Answer = RunSummary | number | undefined;

/** What the export thread asks the main one. */
export class MainQuestions {
  private readonly waiting = new Map<number, (answer: Answer) => void>();
  private nextId = 1;

  constructor(private readonly post: (message: FromThread) => void) {}

  /** Length of the durable part of a record log; 0 where it is not known. */
  async lengthBytes(traceId: TraceId): Promise<number> {
    const answer = await this.ask('length', traceId);
    return typeof answer === 'number' ? answer : 0;
  }

  /** A run as it is known. */
  async find(traceId: TraceId): Promise<RunSummary | undefined> {
    const answer = await this.ask('run', traceId);
    return typeof answer === 'number' ? undefined : answer;
  }

  answered(id: number, answer: Answer): void {
    const resolve = this.waiting.get(id);
    this.waiting.delete(id);
    resolve?.(answer);
  }

  private ask(what: 'run' | 'length', traceId: TraceId): Promise<Answer> {
    const id = this.nextId;
    this.nextId += 1;
    return new Promise((resolve) => {
      this.waiting.set(id, resolve);
      this.post({ type: 'ask', id, what, traceId });
    });
  }
}
