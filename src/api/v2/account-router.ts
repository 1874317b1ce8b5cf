import { Router } from 'express';
import { ApiError } from '../api-error.js';
import { V2_PATH } from '../api-router.js';
import { authorize, callerOf } from '../authenticate.js';
import { success } from '../envelope.js';
import type { V2Deps } from './v2-deps.js';

/** Accounts: everybody sees their own. */
export function accountRouter({ accounts }: Pick<V2Deps, 'accounts'>): Router {
  const router = Router();
  router.get(`${V2_PATH}/accounts`, authorize(null), async (_request, response) => {
    const account = await accounts.find(callerOf(response).accountId);
    response.json(success(account === undefined ? [] : [account]));
  });
  router.get(`${V2_PATH}/accounts/:accountId`, authorize(null), async (_request, response) => {
    const account = await accounts.find(callerOf(response).accountId);
    if (account === undefined) throw ApiError.notFound();
    response.json(success(account));
  });
  return router;
}
