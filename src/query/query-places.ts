import { QueryError } from './query-error.js';

/** Queries that run at once; each has threads and memory of its own. */
const MAX_RUNNING = 2;
/** Queries that wait for a place. */
const MAX_WAITING = 8;

/** Hands out the places in which queries, or other work that takes much, run, in the order in which they came. */
export class QueryPlaces {
  /** @param what what runs there, for the message, in the plural */
  constructor(private readonly what: string) {}

  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /**
   * Waits for a place. @returns what gives it back
   * @throws QueryError `busy` where as many wait as may, `stopped` when `signal` aborts
   */
  async take(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw stopped();
    if (this.running < MAX_RUNNING) {
      this.running += 1;
    } else if (this.waiting.length >= MAX_WAITING) {
      throw new QueryError(
        'busy',
        `${MAX_RUNNING} ${this.what} are running and ${MAX_WAITING} are waiting; try again later`,
      );
    } else {
      await this.wait(signal);
    }
    return () => this.leave();
  }

  private wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const onStop = () => {
        this.waiting.splice(this.waiting.indexOf(enter), 1);
        reject(stopped());
      };
      const enter = () => {
        signal.removeEventListener('abort', onStop);
        resolve();
      };
      this.waiting.push(enter);
      signal.addEventListener('abort', onStop, { once: true });
    });
  }

  private leave(): void {
    const next = this.waiting.shift();
    if (next === undefined) this.running -= 1;
    else next();
  }
}

function stopped(): QueryError {
  return new QueryError('stopped', 'it was stopped while it waited');
}
