import type { Request, Response } from 'express';
import { callerOf } from '../authenticate.js';
import { textRedactor } from '../text-redactor.js';
import type { RunDocumentContext } from './run-document.js';
import type { V2Deps } from './v2-deps.js';

/** What runs are shown with in the answer to a request. */
export function runContext(
  request: Request,
  response: Response,
  { clock, factsOf, redaction }: Pick<V2Deps, 'clock' | 'factsOf' | 'redaction'>,
): RunDocumentContext {
  return {
    nowUnixMs: clock.nowUnixMs(),
    redactor: textRedactor(callerOf(response), redaction),
    baseUrl: `${request.protocol}://${request.get('host') ?? request.hostname}`,
    isStartable: ({ job, accountId }) => (factsOf({ name: job.name, accountId })?.commandLines ?? []).length > 0,
  };
}
