import { type Clock, systemClock } from '../../src/core/clock.js';
import type { Guard } from '../../src/core/guard.js';
import { Health } from '../../src/core/health.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { DecodedBodies, ExportIntake, type ExportIntakeConfig } from '../../src/receiver/export-intake.js';
import type { OtlpGrpcReceiverConfig } from '../../src/receiver/grpc/grpc-services.js';
import { OtlpGrpcReceiver } from '../../src/receiver/grpc/otlp-grpc-receiver.js';
import { GrpcClient } from './grpc-client.js';
import { RawConnection } from './http-client.js';
import { MemoryConsumer } from './memory-consumer.js';
import { passthroughBodies } from './passthrough-decoder.js';
import { RecordingLogger } from './recording-logger.js';

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

/** What a bench may set. */
type BenchConfig = Partial<OtlpGrpcReceiverConfig> & ExportIntakeConfig;

/** A real gRPC receiver on a free port, with a consumer in memory, and clients to it. */
export class GrpcBench {
  readonly consumer = new MemoryConsumer();
  readonly logger = new RecordingLogger();
  readonly health = new Health();
  readonly intake: ExportIntake;
  readonly receiver: OtlpGrpcReceiver;
  private readonly clients: GrpcClient[] = [];

  constructor(config: BenchConfig = {}, guards: readonly Guard[] = [], clock: Clock = systemClock) {
    const { consumer, logger, health } = this;
    const decoders = { protobuf: passthroughBodies(codecs.protobuf), json: passthroughBodies(codecs.json) };
    const bodies = new DecodedBodies(decoders, consumer);
    this.intake = new ExportIntake(config, { codecs, bodies, guards, clock, logger });
    const httpUrl = () => 'http://127.0.0.1:4318';
    const deps = { intake: this.intake, clock, logger, health, httpUrl };
    this.receiver = new OtlpGrpcReceiver({ host: '127.0.0.1', port: 0, ...config }, deps);
  }

  static async start(...given: ConstructorParameters<typeof GrpcBench>): Promise<GrpcBench> {
    const bench = new GrpcBench(...given);
    await bench.receiver.start();
    return bench;
  }

  get port(): number {
    return this.receiver.address?.port ?? 0;
  }

  /** A connection of gRPC, dropped when the bench stops. */
  client(): GrpcClient {
    const client = new GrpcClient(this.port);
    this.clients.push(client);
    return client;
  }

  /** A connection on which a test writes what it likes. */
  connect(): Promise<RawConnection> {
    return RawConnection.open(this.port);
  }

  /** Ends at once, whatever is in flight. */
  async stop(): Promise<void> {
    for (const client of this.clients) client.destroy();
    await this.receiver.shutdown(AbortSignal.abort());
  }
}
