import { Router } from 'express';

/** Serves `/hooks/platform` if webhooks are not set up: 404 with what is missing. @param missing for example `--platform-url` */
export function platformHookOff(missing: readonly string[]): Router {
  const router = Router();
  router.all('/hooks/platform', (_request, response) => {
    response
      .status(404)
      .type('text/plain')
      .send(`Webhooks of the hosted platform are off: set ${missing.join(' and ')}.\n`);
  });
  return router;
}
