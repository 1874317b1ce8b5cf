import { readFile } from 'node:fs/promises';
import { Router } from 'express';
import { packageFile } from '../../component/package-file.js';

const TYPES = {
  'style.css': 'text/css; charset=utf-8',
  'live.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

/** What pages are shown with, from the package's folder `pages/`; needs no token. */
export function assetRouter(): Router {
  const router = Router();
  for (const [name, type] of Object.entries(TYPES)) {
    let read: Promise<Buffer> | undefined;
    router.get(`/pages/${name}`, async (_request, response) => {
      read ??= readFile(packageFile(`pages/${name}`));
      // Pages name them with the program's version.
      response.set({
        'Cache-Control': 'public, max-age=86400',
        'X-Content-Type-Options': 'nosniff',
        'Content-Type': type,
      });
      response.send(await read);
    });
  }
  return router;
}
