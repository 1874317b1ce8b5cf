import type { Request } from 'express';
import { RUN_STATUS, type RunStatus } from '../../storage/run-status.js';
import { pageNumber } from './page-number.js';

/** What can be chosen, by its word in the address. */
export const STATUS_CHOICES = {
  failed: [RUN_STATUS.error],
  running: [RUN_STATUS.queued, RUN_STATUS.starting, RUN_STATUS.running],
  succeeded: [RUN_STATUS.success],
  cancelled: [RUN_STATUS.cancelled],
} as const satisfies Readonly<Record<string, readonly RunStatus[]>>;

/** Which runs a list shows. */
export interface RunListFilter {
  /** `null` for all. */
  readonly status: keyof typeof STATUS_CHOICES | null;
  /** Empty for all. */
  readonly text: string;
  /** From 1. */
  readonly page: number;
}

/** The longest text that is looked for, in characters. */
const MAX_TEXT_LENGTH = 200;

/** Reads an address; what cannot be read there filters nothing. */
export function runListFilter(request: Pick<Request, 'query'>): RunListFilter {
  const { status, text } = request.query;
  return {
    status: typeof status === 'string' && isChoice(status) ? status : null,
    text: typeof text === 'string' ? text.trim().slice(0, MAX_TEXT_LENGTH) : '',
    page: pageNumber(request),
  };
}

/** The address of a list. */
export function runListHref({ status, text, page }: RunListFilter): string {
  const parameters = new URLSearchParams({
    ...(status !== null && { status }),
    ...(text !== '' && { text }),
    ...(page > 1 && { page: String(page) }),
  });
  return parameters.size === 0 ? '/' : `/?${parameters}`;
}

function isChoice(text: string): text is keyof typeof STATUS_CHOICES {
  return Object.hasOwn(STATUS_CHOICES, text);
}
