import type { Clock } from '../../component/clock.js';
import { pause } from '../../component/pause.js';
import { RecordsToRequests } from '../../decode/records-to-request.js';
import { HttpTransport } from '../../delivery/http-transport.js';
import { readErrorResponse } from '../../exporter/otlp-response.js';
import type { ExportRequest } from '../../otlp/export-request.js';
import { JsonCodec } from '../../otlp/json-codec.js';
import { ProtobufCodec } from '../../otlp/protobuf-codec.js';
import type { Signal } from '../../record/record-batch.js';
import { ConsumeError, type Delivery, type RecordConsumer } from '../../record/record-consumer.js';

const TIMEOUT_MS = 60_000;
/** How long to wait before another attempt where the bridge does not say, in milliseconds. */
const RETRY_MS = 500;

/**
 * Hands records to a bridge that runs, over OTLP, what OTLP has no place for in `run_bridge.*` attributes. Tries again for
 * as long as it cannot be reached: it may be started anew meanwhile.
 */
export class HandOverConsumer implements RecordConsumer {
  private readonly requests = new RecordsToRequests();
  private readonly protobuf = new ProtobufCodec();
  private readonly json = new JsonCodec();
  private readonly transports: Readonly<Record<Signal, HttpTransport>>;

  /** @param baseUrl as in OTEL_EXPORTER_OTLP_ENDPOINT */
  constructor(
    private readonly baseUrl: string,
    private readonly clock: Clock,
    private readonly giveUp: AbortSignal,
    private readonly onTrouble: (message: string) => void,
  ) {
    this.transports = { traces: this.transport('traces'), logs: this.transport('logs') };
  }

  /** @throws ConsumeError when it will never be taken, or time is up. */
  async consume({ batches, foreign }: Delivery): Promise<void> {
    for (const batch of batches) await this.sendAll(this.requests.push(batch));
    for (const { signal, body } of foreign) await this.sendAll([this.json.decode(signal, Buffer.from(body))]);
  }

  /** Sends the spans that never ended; called once, at the end. @throws ConsumeError */
  async finish(): Promise<void> {
    await this.sendAll(this.requests.finish());
  }

  close(): void {
    this.transports.traces.close();
    this.transports.logs.close();
  }

  private async sendAll(requests: readonly ExportRequest[]): Promise<void> {
    for (const request of requests) await this.send(request.signal, this.protobuf.encode(request));
  }

  private async send(signal: Signal, body: Uint8Array): Promise<void> {
    for (;;) {
      const result = await this.transports[signal].send(body, this.giveUp);
      if (result.kind === 'accepted') return;
      const message = `${this.baseUrl}: ${result.message || `answered ${result.status}`}`;
      if (result.kind === 'refused') throw new ConsumeError('refused', message, RETRY_MS);
      // A bridge that is busy says when to come again; one that does not answer is trouble.
      if (result.status === null) this.onTrouble(message);
      await pause(this.clock, result.retryAfterMs ?? RETRY_MS, this.giveUp);
      if (this.giveUp.aborted) throw new ConsumeError('unavailable', message, RETRY_MS);
    }
  }

  private transport(signal: Signal): HttpTransport {
    const options = {
      url: new URL(`${this.baseUrl.replace(/\/+$/, '')}/v1/${signal}`),
      headers: { 'content-type': 'application/x-protobuf' },
      timeoutMs: TIMEOUT_MS,
      compression: 'none',
      readAccepted: () => ({ rejectedCount: 0, message: '' }),
      readError: readErrorResponse,
    } as const;
    return new HttpTransport(options, this.clock);
  }
}
