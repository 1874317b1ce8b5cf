import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { type Clock, RetryPolicy, systemClock } from '../../../src/core/clock.js';
import { PlatformApi } from '../../../src/platform/platform-api.js';
import { PlatformHttp } from '../../../src/platform/platform-http.js';
import { PlatformServer } from '../../fake/platform-server.js';
import { RecordingLogger } from '../../fake/recording-logger.js';

interface Started {
  readonly server: PlatformServer;
  readonly folder: string;
  readonly logger: RecordingLogger;
}

/** A platform, a folder and a log, made anew for each test of a file. */
export class Asking {
  private started: Started | undefined;
  readonly running = new AbortController().signal;

  static forEachTest(): Asking {
    const asking = new Asking();
    beforeEach(async () => {
      const folder = mkdtempSync(join(tmpdir(), 'run-bridge-platform-'));
      asking.started = { server: await PlatformServer.listen(), folder, logger: new RecordingLogger() };
    });
    afterEach(() => {
      asking.server.close();
      rmSync(asking.folder, { recursive: true, force: true });
    });
    return asking;
  }

  get server(): PlatformServer {
    return this.now.server;
  }
  get folder(): string {
    return this.now.folder;
  }
  get logger(): RecordingLogger {
    return this.now.logger;
  }

  private get now(): Started {
    if (this.started === undefined) throw new Error('only within a test');
    return this.started;
  }

  http({ url = this.server.url, token = this.server.token, clock = systemClock as Clock } = {}): PlatformHttp {
    const retryPolicy = new RetryPolicy({ baseMs: 2, maxMs: 2, maxRetryAfterMs: 600_000 }, () => 0);
    const options = { baseUrl: new URL(url), token, userAgent: 'run-bridge/test' };
    return new PlatformHttp(options, { clock, logger: this.logger, retryPolicy });
  }

  api(given: Parameters<Asking['http']>[0] & { accountId?: string } = {}): PlatformApi {
    return new PlatformApi(this.http(given), given.accountId ?? String(this.server.accountId));
  }
}
