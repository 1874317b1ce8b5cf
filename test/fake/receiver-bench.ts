import { systemClock } from '../../src/core/clock.js';
import type { Guard } from '../../src/core/guard.js';
import { Health } from '../../src/core/health.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import { DecodedBodies, ExportIntake, type ExportIntakeConfig } from '../../src/receiver/export-intake.js';
import { OtlpHttpReceiver, type OtlpHttpReceiverConfig } from '../../src/receiver/otlp-http-receiver.js';
import { type Answer, RawConnection, type Sending, send } from './http-client.js';
import { MemoryConsumer } from './memory-consumer.js';
import { passthroughBodies } from './passthrough-decoder.js';
import { RecordingLogger } from './recording-logger.js';

const codecs = { protobuf: new ProtobufCodec(), json: new JsonCodec() };

/** Limits of the receiver and of what stands behind it. */
type BenchConfig = Partial<OtlpHttpReceiverConfig> & ExportIntakeConfig;

/** A real receiver on a free port, with a consumer in memory, and a client to it. */
export class ReceiverBench {
  readonly consumer = new MemoryConsumer();
  readonly logger = new RecordingLogger();
  readonly health = new Health();
  readonly receiver: OtlpHttpReceiver;

  private constructor(config: BenchConfig, guards: readonly Guard[]) {
    const { consumer, logger, health } = this;
    const decoders = { protobuf: passthroughBodies(codecs.protobuf), json: passthroughBodies(codecs.json) };
    const bodies = new DecodedBodies(decoders, consumer);
    const intake = new ExportIntake(config, { codecs, bodies, guards, clock: systemClock, logger });
    this.receiver = new OtlpHttpReceiver({ host: '127.0.0.1', port: 0, ...config }, { intake, logger, health });
  }

  static async start(config: BenchConfig = {}, guards: readonly Guard[] = []): Promise<ReceiverBench> {
    const bench = new ReceiverBench(config, guards);
    await bench.receiver.start();
    return bench;
  }

  get port(): number {
    return this.receiver.address.port;
  }

  /** Ends at once, whatever is in flight. */
  stop(): Promise<void> {
    return this.receiver.shutdown(AbortSignal.abort());
  }

  send(sending: Sending): Promise<Answer> {
    return send(this.port, sending);
  }

  /** POST /v1/traces in protobuf. */
  postTraces(
    body: Uint8Array | readonly Uint8Array[],
    headers: Readonly<Record<string, string>> = {},
  ): Promise<Answer> {
    return this.send({ path: '/v1/traces', headers: { 'Content-Type': 'application/x-protobuf', ...headers }, body });
  }

  /** POST /v1/traces in JSON. */
  postJson(body: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
    const type = { 'Content-Type': 'application/json' };
    return this.send({ path: '/v1/traces', headers: { ...type, ...headers }, body: Buffer.from(body) });
  }

  connect(): Promise<RawConnection> {
    return RawConnection.open(this.port);
  }
}
