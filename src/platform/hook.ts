import { createHmac, timingSafeEqual } from 'node:crypto';
import express, { type Request, type Response, Router } from 'express';
import type { Clock } from '../core/clock.js';
import type { Logger } from '../core/logger.js';
import { StoreError } from '../storage/store-error.js';
import type { PullStore } from './pull-store.js';

/** Which webhooks are taken. */
export interface PlatformHookConfig {
  /** The platform's base URL, in the form of the store. */
  readonly platform: string;
  /** What deliveries are signed with. */
  readonly secret: string;
  /** The only account whose runs are taken; `null` for any. */
  readonly accountId: string | null;
  /** Maximum number of runs waiting to be pulled; a webhook beyond it is answered 503. */
  readonly maxWaiting: number;
}

/** What the hook works with. */
export interface PlatformHookDeps {
  readonly store: PullStore;
  /** Called when a run was added. */
  readonly onNoted: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

const PATH = '/hooks/platform';
/** A real payload has about 1 KiB. */
const MAX_BODY_BYTES = 64 * 1024;
/** Bodies that are read at a time. */
const MAX_BODIES = 32;
/** When to come back, in seconds. */
const RETRY_AFTER_S = 60;
const WANTED = 'job.run.completed';

/**
 * `POST /hooks/platform`: durably adds the run of a signed `job.run.completed` to the queue, and answers 202; it is pulled
 * afterwards. A repeated delivery changes nothing. Other events are answered 200 and have no effect, 401 a
 * wrong signature, 503 if too many runs wait or the state cannot be written.
 */
export function platformHook(config: PlatformHookConfig, deps: PlatformHookDeps): Router {
  let bodyCount = 0;
  let refusedCount = 0;
  const router = Router();
  router.post(
    PATH,
    (_request, response, next) => {
      if (bodyCount >= MAX_BODIES) {
        later(response, 'Too many webhooks at a time.');
        return;
      }
      bodyCount += 1;
      response.once('close', () => {
        bodyCount -= 1;
      });
      next();
    },
    // The signature is that of the bytes on the wire.
    express.raw({ type: () => true, limit: MAX_BODY_BYTES, inflate: false }),
    async (request: Request, response: Response) => {
      const body: unknown = request.body;
      const bytes = Buffer.isBuffer(body) ? body : Buffer.alloc(0);
      if (!isSignedWith(config.secret, bytes, request.headers.authorization)) {
        refusedCount += 1;
        // At 1, 10, 100 …: guesses must not fill the disk.
        if (/^10*$/.test(String(refusedCount)))
          deps.logger.warn({ refusedCount }, 'rejected a webhook with an invalid signature');
        say(
          response,
          401,
          'The signature is wrong: RUN_BRIDGE_PLATFORM_HOOK_SECRET must be the secret of this webhook.',
        );
        return;
      }
      await take(bytes, response);
    },
  );
  router.all(PATH, (_request, response) => say(response.set('Allow', 'POST'), 405, 'Webhooks come with POST.'));
  return router;

  async function take(bytes: Buffer, response: Response): Promise<void> {
    const payload = parseHookPayload(bytes);
    if (payload === undefined) return say(response, 400, "This is not a webhook's body: JSON with an eventType.");
    const { eventType, accountId, runId } = payload;
    if (eventType !== WANTED) return say(response, 200, `Nothing to do: only ${WANTED} starts an import.`);
    if (accountId === null || runId === null) return say(response, 200, 'Nothing to do: it names no account and run.');
    if (config.accountId !== null && accountId !== config.accountId) {
      return say(response, 403, `This bridge takes account ${config.accountId} alone (--platform-account).`);
    }
    try {
      const key = { platform: config.platform, accountId, runId };
      const isNoted = await deps.store.add([key], deps.clock.nowUnixMs(), config.maxWaiting);
      if (!isNoted)
        return later(response, `${config.maxWaiting} runs are waiting to be imported; there is no room for more.`);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      deps.logger.error(
        { reason: error.message },
        'failed to save a webhook of the platform; the platform sends it again',
      );
      return later(response, 'The run cannot be saved at the moment; see the log of run-bridge.');
    }
    deps.onNoted();
    say(response, 202, 'The run is queued and will be imported.');
  }
}

function later(response: Response, text: string): void {
  say(response.set('Retry-After', String(RETRY_AFTER_S)), 503, text);
}

function say(response: Response, status: number, text: string): void {
  response.status(status).set('Cache-Control', 'no-store').type('text/plain').send(`${text}\n`);
}

/** The content of a webhook of the hosted platform. */
export interface HookPayload {
  /** For example `job.run.completed`. */
  readonly eventType: string;
  /** Texts of digits; `null` if missing. */
  readonly accountId: string | null;
  readonly runId: string | null;
}

/**
 * Parses a webhook's body; `undefined` if it is invalid. By hand: a schema library is not loaded at a start for three fields.
 */
export function parseHookPayload(body: Uint8Array): HookPayload | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(body).toString('utf8'));
  } catch {
    return undefined;
  }
  const eventType = fieldOf(value, 'eventType');
  if (typeof eventType !== 'string') return undefined;
  return {
    eventType,
    accountId: idOf(fieldOf(value, 'accountId')),
    runId: idOf(fieldOf(fieldOf(value, 'data'), 'runId')),
  };
}

function fieldOf(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined;
  return Object.getOwnPropertyDescriptor(value, name)?.value;
}

function idOf(value: unknown): string | null {
  const text = Number.isSafeInteger(value) ? String(value) : value;
  return typeof text === 'string' && /^\d{1,20}$/.test(text) ? text : null;
}

/**
 * Whether a webhook's body was signed with a secret: its `Authorization` header is the HMAC-SHA256 of the unmodified body,
 * keyed with the secret, in hexadecimal. Takes as long for a wrong signature as for a right one.
 */
export function isSignedWith(secret: string, body: Uint8Array, authorization: string | undefined): boolean {
  const expected = createHmac('sha256', secret).update(body).digest();
  const isWellFormed = /^[0-9a-f]{64}$/i.test(authorization ?? '');
  const given = isWellFormed ? Buffer.from(authorization ?? '', 'hex') : Buffer.alloc(expected.byteLength);
  return timingSafeEqual(expected, given) && isWellFormed;
}
