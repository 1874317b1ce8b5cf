import { type Request, type RequestHandler, Router } from 'express';
import { ApiError } from '../api/api-error.js';
import { authorize, callerOf } from '../api/authenticator.js';
import { success } from '../api/envelope.js';
import type { Guard } from '../core/guard.js';
import { letTakeItsTime } from '../core/http-listener.js';
import type { Logger } from '../core/logger.js';
import { readableBytes } from '../core/text.js';
import { API_PATH } from '../run/api-path.js';
import { ArtifactError, type ArtifactKey, type ArtifactStore, stepTelemetryOf } from '../storage/artifacts.js';
import { parseRunNumber } from '../storage/state-tables.js';
import { findStep, readArtifactParameter, readStepParameter, toArtifactApiError, tooLarge } from './requests.js';
import type { RunArtifacts } from './run-artifacts.js';

/** The limits for uploads. */
export interface UploadConfig extends StepQuotaConfig {
  /** The largest artifact, in bytes. */
  readonly maxFileBytes: number;
}

/** Dependencies of the router. */
export interface UploadRouterDeps {
  readonly artifacts: Pick<RunArtifacts, 'stepsOf'>;
  readonly openStore: () => Promise<ArtifactStore>;
  /** Checks for a shortage before a body is read. */
  readonly guard: Pick<Guard, 'findShortage'>;
  readonly logger: Logger;
}

/**
 * `PUT /api/run-bridge/v1/runs/{id}/artifacts/{path}?step=N`: stores the body as an artifact of a step, replacing an earlier
 * one. 201 when it is stored; 413 if it is too large or the step has too many, 507 if the disk or the bucket is full.
 */
export function uploadRouter(config: UploadConfig, { artifacts, openStore, guard, logger }: UploadRouterDeps): Router {
  const router = Router();
  const quota = new StepQuota(config, openStore);
  const slots = new UploadSlots();
  const known = new KnownSteps(artifacts);
  const upload: RequestHandler = async (request, response) => {
    const key = await keyOf(request, callerOf(response).accountId);
    const announcedBytes = Number(request.headers['content-length'] ?? 0);
    const endExemption = letTakeItsTime(request);
    try {
      refuseShortage(announcedBytes);
      if (announcedBytes > config.maxFileBytes) throw tooLarge(config.maxFileBytes);
      const sizeBytes = await slots.run(() => keep(key, request, announcedBytes));
      response.status(201).json(success({ path: key.path, step: key.stepIndex, size_bytes: sizeBytes }, 201));
    } catch (error) {
      // The client has gone, so nobody reads the error.
      if (request.destroyed && !request.complete) return;
      // A client that is still sending does not read the response.
      request.resume();
      throw toArtifactApiError(error, logger);
    } finally {
      endExemption();
    }
  };
  router.put(`${API_PATH}/runs/:runId/artifacts/*path`, authorize('artifacts:write'), upload);
  return router;

  async function keyOf(request: Request, accountId: number): Promise<ArtifactKey> {
    const path = readArtifactParameter(request.params.path);
    if (path === undefined) {
      throw new ApiError(
        400,
        "path: must be names with / between them, without '.', '..', backslashes or control characters, of 800 bytes at the most.",
      );
    }
    if (stepTelemetryOf(path) !== undefined) {
      throw new ApiError(400, `path: ${path} is the step's telemetry, which run-bridge makes itself.`);
    }
    if (!['identity', undefined].includes(request.headers['content-encoding'])) {
      throw new ApiError(415, 'Send the artifact as it is, without a Content-Encoding.');
    }
    const index = readStepParameter(request.query.step);
    if (index === null) throw new ApiError(400, 'step: must name the step of the artifact, for example ?step=1.');
    const runId = parseRunNumber(request.params.runId);
    if (runId === undefined || !(await known.has(accountId, runId, index))) throw ApiError.notFound();
    return { runId, stepIndex: index, path };
  }

  function refuseShortage(bytes: number): void {
    const shortage = guard.findShortage(bytes);
    if (shortage === undefined) return;
    throw new ApiError(507, shortage.message, { 'Retry-After': String(Math.ceil(shortage.retryAfterMs / 1_000)) });
  }

  async function keep(key: ArtifactKey, request: Request, announcedBytes: number): Promise<number> {
    await quota.check(key, announcedBytes);
    let sizeBytes = 0;
    const pace = new SenderPace(request);
    const bounded = async function* (): AsyncGenerator<Uint8Array> {
      pace.wait();
      // A refused upload keeps the connection open for the response.
      for await (const chunk of request.iterator({ destroyOnReturn: false })) {
        const bytes: Uint8Array = chunk;
        pace.came(bytes.length);
        sizeBytes += bytes.length;
        if (sizeBytes > config.maxFileBytes) throw tooLarge(config.maxFileBytes);
        yield bytes;
        pace.wait();
      }
      pace.came(0);
      // The size of an upload without Content-Length is known only now.
      if (sizeBytes > announcedBytes) await quota.check(key, sizeBytes);
    };
    const store = await openStore();
    try {
      await store.put(key, bounded());
    } finally {
      pace.came(0);
    }
    await quota.add(key, sizeBytes);
    return sizeBytes;
  }
}

/** How long a step is assumed to exist without another check, in milliseconds; its run may be removed. */
const KNOWN_MS = 5_000;
/** The most steps that are cached as existing; the one checked longest ago is dropped. */
const MAX_KNOWN = 500;

/** Checks whether a step exists. The answer is cached, since thousands of artifacts of a step may follow each other. */
class KnownSteps {
  /** When each cached answer expires, in milliseconds of a monotonic clock. */
  private readonly untilMs = new Map<string, number>();

  constructor(private readonly artifacts: Pick<RunArtifacts, 'stepsOf'>) {}

  /** @throws StoreError */
  async has(accountId: number, runId: number, index: number): Promise<boolean> {
    const name = `${accountId}/${runId}/${index}`;
    if ((this.untilMs.get(name) ?? 0) > performance.now()) return true;
    this.untilMs.delete(name);
    const steps = await this.artifacts.stepsOf(accountId, runId);
    if (steps === undefined || findStep(steps, index) === undefined) return false;
    for (const oldest of this.untilMs.keys()) {
      if (this.untilMs.size < MAX_KNOWN) break;
      this.untilMs.delete(oldest);
    }
    this.untilMs.set(name, performance.now() + KNOWN_MS);
    return true;
  }
}

/** How long a sender may take for its next byte at first, in milliseconds; each byte adds a millisecond, up to this value. */
const WAIT_MS = 60_000;

/** Closes the connection of a sender that is too slow: an upload may take any time at a kilobyte a second or more. */
class SenderPace {
  private leftMs = WAIT_MS;
  private sinceMs = 0;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly request: Request) {}

  /** Starts to measure the time until the next data. */
  wait(): void {
    this.sinceMs = performance.now();
    this.timer = setTimeout(() => this.request.destroy(), this.leftMs);
  }

  /** Counts received bytes and stops measuring: the time for processing them is not the sender's. */
  came(byteCount: number): void {
    clearTimeout(this.timer);
    this.leftMs = Math.max(0, Math.min(this.leftMs - (performance.now() - this.sinceMs), WAIT_MS)) + byteCount;
  }
}

/** The limits for the artifacts of a step. */
export interface StepQuotaConfig {
  /** The most artifacts. */
  readonly maxCount: number;
  /** Their largest total size, in bytes. */
  readonly maxTotalBytes: number;
}

/** The most steps whose artifacts are cached; the one used longest ago is dropped and listed again when needed. */
const MAX_STEPS = 500;

/** The artifacts of a step. */
interface StepUsage {
  readonly sizes: Map<string, number>;
  totalBytes: number;
}

/** Limits the uploads of a step. Its artifacts are listed once, and then counted as they are stored by this process. */
export class StepQuota {
  private readonly usages = new Map<string, Promise<StepUsage>>();

  constructor(
    private readonly config: StepQuotaConfig,
    private readonly openStore: () => Promise<Pick<ArtifactStore, 'list'>>,
  ) {}

  /** Checks an upload. @throws ArtifactError `tooMany` if the step may not have that much more */
  async check(key: ArtifactKey, sizeBytes: number): Promise<void> {
    const { sizes, totalBytes } = await this.usageOf(key);
    const { maxCount, maxTotalBytes } = this.config;
    if (!sizes.has(key.path) && sizes.size >= maxCount) {
      throw new ArtifactError('tooMany', `the step has ${maxCount} artifacts, the maximum`);
    }
    if (totalBytes - (sizes.get(key.path) ?? 0) + sizeBytes > maxTotalBytes) {
      const limit = readableBytes(maxTotalBytes);
      throw new ArtifactError('tooMany', `with this, the step's artifacts would be larger than ${limit} together`);
    }
  }

  /** Counts a stored artifact. */
  async add(key: ArtifactKey, sizeBytes: number): Promise<void> {
    const usage = await this.usageOf(key);
    usage.totalBytes += sizeBytes - (usage.sizes.get(key.path) ?? 0);
    usage.sizes.set(key.path, sizeBytes);
  }

  private usageOf({ runId, stepIndex }: ArtifactKey): Promise<StepUsage> {
    const name = `${runId}/${stepIndex}`;
    const usage = this.usages.get(name) ?? this.count(runId, stepIndex);
    this.usages.delete(name);
    for (const oldest of this.usages.keys()) {
      if (this.usages.size < MAX_STEPS) break;
      this.usages.delete(oldest);
    }
    this.usages.set(name, usage);
    // What could not be counted is counted the next time.
    usage.catch(() => this.usages.delete(name));
    return usage;
  }

  private async count(runId: number, stepIndex: number): Promise<StepUsage> {
    const artifacts = await (await this.openStore()).list(runId, stepIndex);
    const sizes = new Map<string, number>(artifacts.map(({ path, sizeBytes }) => [path, sizeBytes]));
    return { sizes, totalBytes: artifacts.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0) };
  }
}

/** The most concurrent uploads: to a bucket, each takes up to 16 MiB of memory. Others wait, unread, on their connections. */
const MAX_AT_A_TIME = 6;

/** Limits concurrency; waiting callers proceed in order. */
export class UploadSlots {
  private freeCount = MAX_AT_A_TIME;
  private readonly waiting: (() => void)[] = [];

  /** Runs an action as soon as a slot is free. */
  async run<T>(action: () => Promise<T>): Promise<T> {
    if (this.freeCount > 0) this.freeCount -= 1;
    else await new Promise<void>((resolve) => this.waiting.push(resolve));
    try {
      return await action();
    } finally {
      const next = this.waiting.shift();
      // The slot passes to the next caller.
      if (next === undefined) this.freeCount += 1;
      else next();
    }
  }
}
