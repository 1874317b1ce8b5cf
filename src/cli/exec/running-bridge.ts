import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/** How long a bridge may take to say that it is one, in milliseconds; on the same machine it takes 1 or 2. */
const ANSWER_MS = 1_000;

/** Whether a run-bridge receives OTLP at a base URL, told by the names of its health checks; a Collector has none there. */
export async function isRunBridge(baseUrl: string): Promise<boolean> {
  try {
    const url = `${baseUrl.replace(/\/+$/, '')}/healthz?verbose`;
    const answer = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS), redirect: 'manual' });
    const report: unknown = await answer.json();
    if (typeof report !== 'object' || report === null || !('checks' in report)) return false;
    const { checks } = report;
    return Array.isArray(checks) && checks.some((check: unknown) => nameOf(check) === 'otlp-http-receiver');
  } catch {
    return false;
  }
}

/** Where the program that holds a data folder says that it listens; it may have died since. `undefined` where none says so. */
export function announcedAddress(dataFolder: string): string | undefined {
  try {
    const holder: unknown = JSON.parse(readFileSync(join(dataFolder, 'lock.json'), 'utf8'));
    const isSaid = typeof holder === 'object' && holder !== null && 'address' in holder;
    return isSaid && typeof holder.address === 'string' ? holder.address : undefined;
  } catch {
    return undefined;
  }
}

function nameOf(check: unknown): unknown {
  return typeof check === 'object' && check !== null && 'name' in check ? check.name : undefined;
}
