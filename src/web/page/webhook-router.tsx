import { Router } from 'express';
import type { PageDeps } from './page-deps.js';
/** Stub. */
export function webhookRouter(_deps: PageDeps): Router {
  return Router();
}
