import { openJournal } from '../cluster/feature.js';
import type { Configuration } from '../config/configuration.js';
import { ConfigurationError } from '../config/configuration-error.js';
import type { KafkaJournalSettings } from '../config/kafka-settings.js';
import { MemoryGuard } from '../core/guard.js';
import { Health } from '../core/health.js';
import { HostCheck } from '../core/http-listener.js';
import { Lifecycle } from '../core/lifecycle.js';
import { createMetrics } from '../metric/feature.js';
import { JsonCodec } from '../otlp/json-codec.js';
import { ProtobufCodec } from '../otlp/protobuf-codec.js';
import { createReceivers, ExportIntake, inFlightLimit, type Receivers } from '../receiver/feature.js';
import type { State } from '../storage/state.js';
import type { WebServer } from '../web/web-server.js';
import { Access, type AccessDeps } from './access.js';
import type { AppDeps } from './app-deps.js';
import { openState } from './open-state.js';
import { createStatusPort, namesOf } from './ports.js';

const ABOUT = {
  does: 'run-bridge takes telemetry here and hands it over to others, which keep it.',
  elsewhere:
    'Telemetry goes to the other port: POST /v1/traces and POST /v1/logs (OTLP over HTTP, 127.0.0.1:4318 by default; over gRPC 127.0.0.1:4317).',
};

/** A program that only receives telemetry and passes it on: it has neither a data folder nor runs. */
export class Receiving {
  /** @throws ConfigurationError, StoreError */
  static async open(config: Configuration, deps: AppDeps): Promise<Receiving> {
    const isStateless = config['database-url'] === 'off';
    const state = isStateless ? undefined : await openState(config, deps.clock);
    const access = new Access(config['otlp-auth'], { ...deps, tokens: state?.tokens ?? NO_TOKENS });
    try {
      const { journal: settings } = config;
      const problems = problemsOf(config, access);
      if (settings === null || problems.length > 0) throw new ConfigurationError(problems);
      const health = new Health();
      const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };
      const journal = await openJournal(settings, { ...deps, health, codecs });
      const memory = new MemoryGuard(config['max-memory'], { ...deps, health });
      const limits = {
        maxBodyBytes: config['max-body-bytes'],
        maxInFlightBytes: inFlightLimit(config['max-memory']),
      };
      const guards = [memory, journal.guard];
      const intake = new ExportIntake(limits, { ...deps, codecs, bodies: journal.bodies, guards });
      const { http, grpc, chosen } = config;
      const hosts = new HostCheck(namesOf(config, deps.ownHosts), deps.logger);
      const receivers = await createReceivers(
        {
          http: { ...http, hosts },
          grpc: grpc === 'off' ? grpc : { ...grpc, hosts, isOptional: !chosen.has('grpc') },
        },
        { ...deps, intake, health, gateAt: (host) => access.gateAt(host), routers: [] },
      );
      const connections = () => ({ ...receivers.connectionCounts, web: webServer.connectionCounts });
      const metrics = createMetrics({
        ...deps,
        memory,
        kept: undefined,
        intake,
        sightings: undefined,
        connections,
        health,
        exports: undefined,
        features: [journal],
      });
      const webServer: WebServer = createStatusPort(config, { ...deps, access, health, metrics, about: ABOUT });
      const lifecycle = new Lifecycle([...journal.components, memory, ...receivers.components, webServer]);
      return new Receiving(settings, lifecycle, receivers, webServer, access, state);
    } catch (error) {
      await state?.close();
      throw error;
    }
  }

  private constructor(
    private readonly settings: KafkaJournalSettings,
    private readonly lifecycle: Lifecycle,
    private readonly receivers: Receivers,
    private readonly web: WebServer,
    private readonly access: Access,
    private readonly state: State | undefined,
  ) {}

  /** Starts all components. @throws ListenError */
  async start(): Promise<void> {
    try {
      await this.lifecycle.start();
    } catch (error) {
      await this.state?.close();
      throw error;
    }
  }

  async shutdown(deadline: AbortSignal): Promise<void> {
    try {
      await this.lifecycle.shutdown(deadline);
    } finally {
      await this.state?.close();
    }
  }

  /** Its URLs and the journal that it writes to; available after the start. */
  get facts() {
    const { receivers, web, access, settings } = this;
    const { host, url } = receivers.httpAddress;
    const { brokers, topics } = settings;
    const isTokenNeeded = !access.isOpen(host);
    return { otlpUrl: url, grpcUrl: receivers.grpcUrl, webUrl: web.address.url, isTokenNeeded, brokers, topics };
  }
}

/** The tokens without a database: none. */
const NO_TOKENS: AccessDeps['tokens'] = {
  findGood: async () => undefined,
  noteUse: async () => {},
  exchangeLink: async () => false,
};

/** Returns why a configuration cannot be used for a program that only receives telemetry, one sentence each. */
function problemsOf(config: Configuration, access: Access): readonly string[] {
  const { http, grpc, web, journal, 'database-url': database } = config;
  const hosts = [http, web, ...(grpc === 'off' ? [] : [grpc])].map(({ host }) => host);
  const problems: string[] = [];
  if (journal === null) {
    problems.push(
      'role: receive writes to topics of Kafka: set journal: kafka: brokers: in the configuration file to where they are',
    );
  }
  if (database === 'off' && !hosts.every((host) => access.isOpen(host))) {
    problems.push(
      'otlp-auth: tokens are in the database: set DATABASE_URL to the one that has them, or otlp-auth to none where nobody else can reach the ports',
    );
  }
  return problems;
}
