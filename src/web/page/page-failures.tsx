import type { ErrorRequestHandler, Request, Response } from 'express';
import { type Caller, SENDER } from '../../api/caller.js';
import { failureHandler } from '../../api/failure-handler.js';
import { Layout, sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import type { PageSession } from './page-session.js';
import { ArrivalPage, SignInPage } from './sign-in-router.js';

/** Returns an error handler that renders every error of the pages as a page, and the sign-in page if there is no token. Mounted last. */
export function pageFailures(
  session: PageSession,
  { links, logger, version }: Pick<PageDeps, 'links' | 'logger' | 'version'>,
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
    const problem = isKept ? message : null;
    await sendPage(response, <SignInPage {...{ to, problem, version }} hasLinks={links !== null} />, 401);
  }
}

/** Returns the signed-in visitor; `null` if there is none. */
function visitorOf(response: Response): Caller | null {
  const { caller }: { readonly caller?: Caller } = response.locals;
  return caller === undefined || caller === SENDER ? null : caller;
}

const TITLES: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not found',
  429: 'Too many tries',
  503: 'Not just now',
};

/** Shown instead of a page: what happened, and what to do. */
export function FailurePage(props: {
  readonly status: number;
  readonly message: string;
  readonly caller: Caller | null;
  readonly version: string;
}) {
  const title = TITLES[props.status] ?? (props.status < 500 ? 'That cannot be done' : 'run-bridge failed');
  return (
    <Layout title={title} caller={props.caller} version={props.version}>
      <h1>{title}</h1>
      <p>{props.message}</p>
      <p>
        <a href="/">All runs</a>
      </p>
    </Layout>
  );
}
