import type { Response } from 'express';
import { type RedactionLevel, redactionFor } from '../redaction/known-names.js';
import { Redactor } from '../redaction/redactor.js';
import { ApiError } from './api-error.js';
import type { Caller } from './caller.js';

/** What an endpoint asks of its caller. */
export type Right =
  | 'runs:read'
  | 'artifacts:read'
  | 'artifacts:write'
  | 'jobs:read'
  | 'jobs:run'
  | 'runs:cancel'
  | 'runs:delete'
  | 'query'
  | 'webhooks:read'
  | 'webhooks:write'
  | 'tokens:manage'
  | 'telemetry:write'
  | 'metrics:read';

const READING: readonly Right[] = ['runs:read', 'artifacts:read', 'jobs:read', 'metrics:read'];
const WORKING: readonly Right[] = [
  ...READING,
  'query',
  'jobs:run',
  'runs:cancel',
  'artifacts:write',
  'telemetry:write',
];

/**
 * The rights of each permission set; docs/operate.md shows them as a table. The names are the hosted platform's. `sender` is
 * an anonymous client at an address that accepts telemetry without a token.
 */
export const PERMISSIONS: Readonly<Record<Caller['permission'], readonly Right[]>> = {
  account_admin: [...WORKING, 'runs:delete', 'webhooks:read', 'webhooks:write', 'tokens:manage'],
  admin: [...WORKING, 'runs:delete', 'webhooks:read', 'webhooks:write'],
  developer: [...WORKING, 'webhooks:read', 'webhooks:write'],
  analyst: [...READING, 'query'],
  webhooks_only: ['webhooks:read', 'webhooks:write'],
  read_only: [...READING, 'webhooks:read'],
  sender: ['telemetry:write', 'artifacts:write', 'metrics:read'],
};

/** Returns whether a caller has a right. */
export function may({ permission }: Pick<Caller, 'permission'>, right: Right): boolean {
  return PERMISSIONS[permission].includes(right);
}

/** How many of a kind run at once. */
const MAX_RUNNING = 2;
/** How many wait for a permit. */
const MAX_WAITING = 8;

/** There was no permit to be had. */
export class NoPermitError extends Error {
  override readonly name = 'NoPermitError';
  /** @param code `busy` if the queue is full, `stopped` if the client has gone */
  constructor(
    readonly code: 'busy' | 'stopped',
    message: string,
  ) {
    super(message);
  }
}

/** Hands out permits for queries, or other work that takes much memory or time, in the order in which they were asked for. */
export class Permits {
  /** @param what what runs with them, for the message, in the plural */
  constructor(private readonly what: string) {}

  private running = 0;
  private readonly waiting: (() => void)[] = [];

  /**
   * Waits for a permit. @returns what gives it back
   * @throws NoPermitError
   */
  async take(signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) throw stopped();
    if (this.running < MAX_RUNNING) {
      this.running += 1;
    } else if (this.waiting.length >= MAX_WAITING) {
      throw new NoPermitError(
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

function stopped(): NoPermitError {
  return new NoPermitError('stopped', 'it was stopped while it waited');
}

/**
 * Answers a request with work that reads whole record logs, and so needs a permit.
 * @param toMessage what is answered where there was none
 * @throws ApiError 503; what `work` throws
 */
export async function withPermit<T>(
  permits: Permits,
  response: Response,
  work: () => Promise<T>,
  toMessage: (reason: string) => string = (reason) => reason,
): Promise<T> {
  let release: () => void;
  try {
    release = await permits.take(goneOf(response));
  } catch (error) {
    if (!(error instanceof NoPermitError)) throw error;
    throw new ApiError(503, toMessage(error.message), { 'Retry-After': '2' }, { cause: error });
  }
  try {
    return await work();
  } finally {
    release();
  }
}

/** Aborts when the client has gone. */
export function goneOf(response: Response): AbortSignal {
  const gone = new AbortController();
  response.once('close', () => gone.abort());
  return gone.signal;
}

/** Shows everything. It learns nothing, so all share it. */
export const UNREDACTED = new Redactor(redactionFor('artifactReader', 'literals'));

/**
 * Returns what shows a run's texts and commands as a caller may see them: unredacted with the right to read artifacts, which contain them as well.
 * It learns the words of the run from its records (`learnNames`). @param setting `redaction`
 */
export function textRedactor(caller: Pick<Caller, 'permission'>, setting: RedactionLevel): Redactor {
  return may(caller, 'artifacts:read') ? UNREDACTED : new Redactor(redactionFor('anybodyElse', setting));
}
