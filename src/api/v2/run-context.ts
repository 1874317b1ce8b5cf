import type { Request } from 'express';
import type { RunDocumentContext } from './run-document.js';
import type { V2Deps } from './v2-deps.js';

/** What runs are shown with in the answer to a request. */
export function runContext(
  request: Request,
  { clock, factsOf }: Pick<V2Deps, 'clock' | 'factsOf'>,
): RunDocumentContext {
  return {
    nowUnixMs: clock.nowUnixMs(),
    baseUrl: `${request.protocol}://${request.get('host') ?? request.hostname}`,
    isStartable: ({ job, accountId }) => (factsOf({ name: job.name, accountId })?.commandLines ?? []).length > 0,
  };
}
