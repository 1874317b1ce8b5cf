import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { BufferPool } from '../core/bytes.js';
import type { Clock, Timer } from '../core/clock.js';
import { HostCheck, HttpListener } from '../core/http-listener.js';
import type { Logger } from '../core/logger.js';
import {
  ByteBudget,
  findEncoding,
  MEDIA_TYPES,
  parseContentLength,
  type Reservation,
  readBody,
} from '../otlp/read-body.js';
import type { Signal } from '../record/record-batch.js';

/**
 * A port of the loopback address for the OTLP of one command. It is open before what reads requests is loaded, so that the
 * command need not wait for that: what engines send is answered and left unread, and other requests wait.
 */
export class CommandReceiver {
  /** @throws ListenError */
  static async open(clock: Clock, logger: Logger): Promise<CommandReceiver> {
    let setAnswer: (answer: RequestListener) => void = () => {};
    const answering = new Promise<RequestListener>((resolve) => {
      setAnswer = resolve;
    });
    const unread = new UnreadRequests(clock);
    const address = { host: '127.0.0.1', port: 0, option: '--http HOST:PORT' };
    const config = { ...address, hosts: new HostCheck(), handlerContinues: true };
    const listener = new HttpListener(
      config,
      (request, response) => {
        if (!unread.receive(request, response)) void answering.then((answer) => answer(request, response));
      },
      logger,
    );
    await listener.start();
    return new CommandReceiver(listener, unread, setAnswer);
  }

  private constructor(
    private readonly listener: HttpListener,
    /** Requests that are answered already. */
    readonly unread: UnreadRequests,
    /** Says what answers the others; to be called once. */
    readonly answerWith: (answer: RequestListener) => void,
  ) {}

  get url(): string {
    return this.listener.address.url;
  }

  /** Finishes the requests under way. */
  close(deadline: AbortSignal): Promise<void> {
    return this.listener.shutdown(deadline);
  }
}

/** Takes a request that was answered. @param bytes OTLP in protobuf @throws where it cannot be kept just now: it is tried again */
export type UnreadRequestTaker = (signal: Signal, bytes: Uint8Array) => Promise<void>;

/** What is to be done before an engine may end. Never throws. @param bytes of its last request */
export type BeforeEnd = (bytes: Uint8Array) => Promise<void>;

interface UnreadRequest {
  readonly signal: Signal;
  readonly bytes: Uint8Array;
  readonly reservation: Reservation;
}

/** Unread requests may take so many bytes together: 16 MiB. What finds no room is not taken. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
/** Each counts for at least so many bytes, which bounds their number. */
const MIN_RESERVED_BYTES = 1_024;
/** Interval until a request that could not be taken is tried again, in milliseconds. */
const RETRY_MS = 1_000;

/** An engine waits for its last answer at most so long, in milliseconds. */
const MAX_WAIT_MS = 5_000;
/** Part of the name of the span of an engine's process, the last one that it sends: `dbt process (x86_64-linux)`. */
const PROCESS_NAME = ' process (';

const SIGNALS: ReadonlyMap<string | undefined, Signal> = new Map([
  ['/v1/traces', 'traces'],
  ['/v1/logs', 'logs'],
]);

/**
 * OTLP requests of a command that were answered and that nobody has looked into. An engine that has done its work sends its
 * last spans and waits for the answers before it ends: loading what reads them, and reading them, would be time that it
 * takes longer. Taken are plain requests in protobuf, as engines send them; what else comes, and what would not find room,
 * is answered by a receiver that says what is wrong with it.
 */
export class UnreadRequests {
  private readonly requests: UnreadRequest[] = [];
  private readonly budget = new ByteBudget(MAX_UNREAD_BYTES);
  private readonly pool = new BufferPool();
  private take: UnreadRequestTaker | undefined;
  private beforeEnd: BeforeEnd | undefined;
  private timer: Timer | undefined;
  private handingOver: Promise<void> | undefined;

  constructor(private readonly clock: Clock) {}

  /** Receives a request, and answers it once it is here whole. @returns false where it is not for here; nothing was done with it then. */
  receive(request: IncomingMessage, response: ServerResponse): boolean {
    const { method, url, headers } = request;
    const signal = SIGNALS.get(url);
    const byteCount = parseContentLength(headers);
    if (method !== 'POST' || signal === undefined || byteCount === undefined) return false;
    if (findEncoding(headers) !== 'protobuf' || headers['content-encoding'] !== undefined) return false;
    if (headers.expect !== undefined) return false;
    const reservation = this.budget.reserve(Math.max(byteCount, MIN_RESERVED_BYTES));
    if (reservation === undefined) return false;
    void this.answer(signal, byteCount, reservation, request, response);
    return true;
  }

  /** Hands them over from now on, one after the other in the order in which they came. */
  handOverTo(take: UnreadRequestTaker): void {
    this.take = take;
    this.handOverSoon();
  }

  /** From now on the last spans of an engine are answered when this is done, or after a while. */
  endAfter(work: BeforeEnd): void {
    this.beforeEnd = work;
  }

  /** Hands over what is left. @throws what the taker throws */
  async settle(): Promise<void> {
    await this.handingOver?.catch(() => undefined);
    await this.handOver();
    this.timer?.cancel();
  }

  private async answer(
    signal: Signal,
    byteCount: number,
    reservation: Reservation,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const room = { maxBodyBytes: byteCount, reservation, pool: this.pool };
    try {
      const body = await readBody(request, { coding: 'identity', announcedBytes: byteCount }, room);
      const bytes = body.bytes();
      if (this.beforeEnd !== undefined && isLast(signal, bytes)) await this.waitFor(this.beforeEnd(bytes));
      // An empty message: all of it was accepted.
      response.writeHead(200, { 'Content-Type': MEDIA_TYPES.protobuf, 'Content-Length': 0 }).end();
      // The pool does not get its memory back: it is kept.
      this.requests.push({ signal, bytes, reservation });
      this.handOverSoon();
    } catch {
      // The sender went away: it has no answer, and nothing was accepted.
      reservation.release();
    }
  }

  private async waitFor(work: Promise<void>): Promise<void> {
    let timer: Timer | undefined;
    const tooLong = new Promise<void>((resolve) => {
      timer = this.clock.after(MAX_WAIT_MS, resolve);
    });
    await Promise.race([work, tooLong]);
    timer?.cancel();
  }

  private handOverSoon(): void {
    if (this.take === undefined || this.timer !== undefined || this.handingOver !== undefined) return;
    this.handOver().catch(() => {
      this.timer = this.clock.after(RETRY_MS, () => {
        this.timer = undefined;
        this.handOverSoon();
      });
    });
  }

  private handOver(): Promise<void> {
    this.handingOver ??= this.handOverAll();
    return this.handingOver;
  }

  private async handOverAll(): Promise<void> {
    try {
      // The answer goes first, and requests that come meanwhile are answered in between.
      await setImmediate();
      for (let next = this.requests[0]; next !== undefined; next = this.requests[0]) {
        await this.take?.(next.signal, next.bytes);
        this.requests.shift();
        next.reservation.release();
        await setImmediate();
      }
    } finally {
      this.handingOver = undefined;
    }
  }
}

function isLast(signal: Signal, bytes: Uint8Array): boolean {
  return signal === 'traces' && Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(PROCESS_NAME);
}
