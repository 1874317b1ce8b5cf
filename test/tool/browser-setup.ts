import chromium from '@sparticuz/chromium';

/** Unpacks the browser before test files that run at the same time look for it. */
export default async function setup(): Promise<void> {
  await chromium.executablePath();
}
