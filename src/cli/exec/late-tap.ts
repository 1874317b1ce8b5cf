import type { RequestListener } from 'node:http';
import type { Decoding } from '../../app/create-decoding.js';
import type { Clock, Timer } from '../../component/clock.js';
import type { Logger } from '../../component/logger.js';
import type { DecodedRequest } from '../../decode/request-decoder.js';
import type { ExportRequest } from '../../otlp/export-request.js';
import type { Signal } from '../../record/record-batch.js';
import type { OtlpTap, TapListener } from './otlp-tap.js';

/** A command that has run for so long gets its decoders loaded, so that no request, and not its end, need wait for that; in milliseconds. */
const WARM_UP_MS = 150;

/** The tap of a command's port, loaded when it is needed: a command that is over at once and sends nothing does without. */
export class LateTap {
  private readonly warmUp: Timer;
  private loading: Promise<OtlpTap> | undefined;
  private loaded: OtlpTap | undefined;

  constructor(
    private readonly deps: { readonly clock: Clock; readonly logger: Logger },
    private readonly listener: TapListener,
  ) {
    this.warmUp = deps.clock.after(WARM_UP_MS, () => {
      // Whoever sends is told.
      this.load().catch(() => undefined);
    });
  }

  /** Answers requests that were not parked, the first one when the receiver is loaded. */
  readonly answer: RequestListener = (request, response) => {
    const receiver = this.load().then((tap) => tap.receiver());
    receiver.then(
      ({ answer }) => answer(request, response),
      (error: unknown) => response.destroy(error instanceof Error ? error : undefined),
    );
  };

  /** Takes a request that was answered before. @throws OtlpDecodeError, ConsumeError */
  async takeAnswered(signal: Signal, bytes: Uint8Array): Promise<void> {
    const tap = await this.load();
    await tap.takeAnswered(signal, bytes);
  }

  /** Of requests that came. */
  get codecs(): Decoding['codecs'] {
    return this.tap.codecs;
  }

  /** The records of a request that came. */
  decode(request: ExportRequest): DecodedRequest {
    return this.tap.decode(request);
  }

  /** The command has ended: nothing is loaded any more that no request asks for. */
  end(): void {
    this.warmUp.cancel();
  }

  private get tap(): OtlpTap {
    if (this.loaded === undefined) throw new Error('no request has come yet');
    return this.loaded;
  }

  private load(): Promise<OtlpTap> {
    this.loading ??= import('./otlp-tap.js').then(({ OtlpTap: Tap }) => {
      this.loaded = new Tap(this.deps, this.listener);
      return this.loaded;
    });
    return this.loading;
  }
}
