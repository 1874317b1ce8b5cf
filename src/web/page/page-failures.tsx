import type { ErrorRequestHandler, Request, Response } from 'express';
import { type Caller, SENDER } from '../../api/caller.js';
import { failureHandler } from '../../api/failure-handler.js';
import { ArrivalPage } from './arrival-page.js';
import { FailurePage } from './failure-page.js';
import type { PageDeps } from './page-deps.js';
import type { PageSession } from './page-session.js';
import { sendPage } from './send-page.js';
import { SignInPage } from './sign-in-page.js';

/** Turns whatever a page's router throws into a page; who has no token gets the one where they sign in. Mounted last. */
export function pageFailures(
  session: PageSession,
  { logger, version }: Pick<PageDeps, 'logger' | 'version'>,
): ErrorRequestHandler {
  return failureHandler(logger, async ({ status, userMessage, headers }, request, response) => {
    response.set(headers);
    if (status === 401) {
      await askForToken(request, response, userMessage);
      return;
    }
    const caller = visitorOf(response);
    await sendPage(
      response,
      <FailurePage status={status} message={userMessage} caller={caller} version={version} />,
      status,
    );
  });

  async function askForToken(request: Request, response: Response, message: string): Promise<void> {
    const isKept = session.tokenIn(request) !== undefined;
    const to = request.method === 'GET' ? request.originalUrl : '/';
    if (request.method === 'GET' && !isKept && request.get('Sec-Fetch-Site') === 'cross-site') {
      await sendPage(response, <ArrivalPage to={to} />);
      return;
    }
    await sendPage(response, <SignInPage to={to} problem={isKept ? message : null} version={version} />, 401);
  }
}

/** Who has signed in; `null` where nobody has. */
function visitorOf(response: Response): Caller | null {
  const { caller }: { readonly caller?: Caller } = response.locals;
  return caller === undefined || caller === SENDER ? null : caller;
}
