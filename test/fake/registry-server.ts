import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { aboutRouter } from '../../src/api/about-router.js';
import { Health } from '../../src/core/health.js';
import { LocalStepRegistry } from '../../src/run/local-step-registry.js';
import type { ExecutionStore } from '../../src/storage/execution-store.js';
import type { State } from '../../src/storage/state.js';
import { executionRouter } from '../../src/web/execution-router.js';
import { WebServer } from '../../src/web/web-server.js';
import { FakeClock } from './fake-clock.js';
import { openFreshState } from './fresh-state.js';
import { RecordingLogger } from './recording-logger.js';

/** A bridge's registry behind a real port, in a folder of its own. */
export class RegistryServer {
  static async open(host = '127.0.0.1', port = 0): Promise<RegistryServer> {
    const folder = await mkdtemp(join(tmpdir(), 'run-bridge-registry-'));
    const state = await openFreshState(join(folder, 'state.db'));
    const opened = new RegistryServer(folder, state, host, port);
    await opened.web.start();
    return opened;
  }

  readonly clock = new FakeClock();
  readonly logger = new RecordingLogger();
  readonly registry: LocalStepRegistry;
  private readonly web: WebServer;

  private constructor(
    private readonly folder: string,
    private readonly state: State,
    host: string,
    port: number,
  ) {
    const { clock, logger } = this;
    this.registry = new LocalStepRegistry({ store: state.executions, runs: state.runs, listeners: [], clock, logger });
    const otlpAddress = { host, port: 4318, url: `http://${host}:4318` };
    const about = {
      version: '1.2.3',
      otlpAddress: () => otlpAddress,
      webAddress: () => this.web.address,
      publicUrl: null,
      exportsTo: ['https://tempo:4318'],
    };
    const routers = [aboutRouter(about, 'web'), executionRouter({ registry: this.registry, logger })];
    this.web = new WebServer({ host, port }, { logger, health: new Health(), routers });
  }

  get store(): ExecutionStore {
    return this.state.executions;
  }

  get port(): number {
    return this.web.address.port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async close(): Promise<void> {
    await this.web.shutdown(AbortSignal.abort());
    await this.registry.shutdown();
    await this.state.close();
    await rm(this.folder, { recursive: true, force: true });
  }
}
