import type { Router } from 'express';

/** The API's routers; each stands behind `apiRouter`, has whole paths, and loads what it needs when it is made. */
export async function apiRouters(): Promise<readonly Router[]> {
  return [];
}
