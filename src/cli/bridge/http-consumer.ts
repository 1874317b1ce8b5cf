import { type Clock, retry } from '../../core/clock.js';
import type { ExportRequest } from '../../otlp/export-request.js';
import { JsonCodec } from '../../otlp/json-codec.js';
import { ProtobufCodec } from '../../otlp/protobuf-codec.js';
import { isWholeLine, linesRequest, RecordsToRequests } from '../../otlp/records-to-request.js';
import type { Delivery, RecordBatch, RecordConsumer } from '../../record/record-batch.js';
import type { TelemetryRecord } from '../../record/telemetry-record.js';
import { CliError, EXIT } from '../command.js';
import { askBridge, type OtlpBody, postOtlp, UnreachableError } from './bridge.js';

/** How often a body is sent to an overloaded bridge. */
const MAX_ATTEMPTS = 20;
/** How long to wait for a bridge that does not answer, in milliseconds. */
const UNREACHABLE_WAIT_MS = 1_000;

/** Waits for a bridge, and is notified of it. */
export interface Patience {
  /** How long to wait at a time, in milliseconds; `Infinity` for no limit. */
  readonly maxWaitMs: number;
  /** The bridge refuses requests at the moment. @param reason one sentence. */
  onWaiting(reason: string): void;
  onGoingOn(): void;
}

/**
 * Sends records to a running bridge over OTLP: each as its line and in order, so that it also gets spans that have
 * not ended yet. If something else answers, for example a Collector in front of it, spans are sent when they end.
 */
export class HttpConsumer implements RecordConsumer {
  private hasSent = false;
  private readonly requests = new RecordsToRequests();
  private readonly codec = new ProtobufCodec();
  private readonly json = new JsonCodec();

  /**
   * @param baseUrl of the bridge, for example `http://127.0.0.1:4318`
   * @param headers sent with every request, for example a token
   * @param isBridge whether a run-bridge answers there; `undefined` as long as nothing has: it is asked
   */
  constructor(
    private readonly baseUrl: string,
    private readonly clock: Clock,
    private readonly stop: AbortSignal,
    private readonly patience?: Patience,
    private readonly headers: Readonly<Record<string, string>> = {},
    private isBridge?: boolean,
  ) {}

  /** @throws CliError when the bridge does not take it. */
  async consume({ batches, passthrough }: Delivery): Promise<void> {
    for (const batch of batches) {
      if (await this.takesLines())
        for (const part of partsOf(batch))
          await this.sendAll(part.isWhole ? linesRequest(part) : this.requests.push(part));
      else await this.sendAll(this.requests.push(batch));
    }
    for (const { signal, body } of passthrough) await this.sendAll([this.json.decode(signal, Buffer.from(body))]);
  }

  /** Sends the starts of spans that have not ended: at the end, or to show the bridge their current state. */
  async finish(): Promise<void> {
    await this.sendAll(this.requests.finish());
  }

  /** One that is not up yet is asked again when it has taken the first records. */
  private async takesLines(): Promise<boolean> {
    if (this.isBridge !== undefined) return this.isBridge;
    const isFound = (await askBridge(this.baseUrl)) !== undefined;
    if (isFound || this.hasSent) this.isBridge = isFound;
    if (isFound) await this.finish();
    return isFound;
  }

  private async sendAll(requests: readonly ExportRequest[]): Promise<void> {
    for (const request of requests) await this.send(request);
  }

  private async send(request: ExportRequest): Promise<void> {
    const body = { signal: request.signal, bytes: this.codec.encode(request) };
    const limit =
      this.patience === undefined ? { maxAttempts: MAX_ATTEMPTS } : { maxElapsedMs: this.patience.maxWaitMs };
    await retry(() => this.post(body), {
      clock: this.clock,
      signal: this.stop,
      ...limit,
      delayMs: (error) => (error instanceof OverloadedError ? error.waitMs : null),
    });
    this.hasSent = true;
    this.patience?.onGoingOn();
  }

  /** @throws OverloadedError when another attempt may help */
  private async post(body: OtlpBody): Promise<void> {
    let reason = `${this.baseUrl} takes no more just now`;
    const waitMs = await postOtlp(this.baseUrl, body, this.clock, this.stop, this.headers).catch((error: unknown) => {
      if (this.patience === undefined || !(error instanceof UnreachableError)) throw error;
      reason = error.message;
      return UNREACHABLE_WAIT_MS;
    });
    if (waitMs === null) return;
    this.patience?.onWaiting(reason);
    throw new OverloadedError(this.baseUrl, waitMs);
  }
}

/** The bridge takes nothing now. */
class OverloadedError extends CliError {
  constructor(
    baseUrl: string,
    readonly waitMs: number,
  ) {
    super(EXIT.failed, `${baseUrl} is overloaded; send the same again later, nothing is written twice`);
  }
}

/** Consecutive records of a batch whose lines contain all of them, or do not. */
function partsOf({ records, ...batch }: RecordBatch): readonly (RecordBatch & { readonly isWhole: boolean })[] {
  const parts: { isWhole: boolean; records: TelemetryRecord[] }[] = [];
  for (const record of records) {
    const isWhole = isWholeLine(record);
    const last = parts.at(-1);
    if (last?.isWhole === isWhole) last.records.push(record);
    else parts.push({ isWhole, records: [record] });
  }
  return parts.map((part) => ({ ...batch, ...part }));
}
