import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { gunzipSync } from 'node:zlib';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';

/** What a receiver answers to one request; status 200 and no body where left out. */
export interface Answer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  /** Never answers. */
  readonly isSilent?: boolean;
  /** Answers so much later, in milliseconds. */
  readonly delayMs?: number;
  /** Closes the connection when the first part of the body is there. */
  readonly isCutOff?: boolean;
}

/** One request that came in. */
export interface ReceivedRequest {
  readonly signal: Signal;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  readonly answer: Answer;
}

const NO_BODY = Buffer.alloc(0);
const PROTOBUF = new ProtobufCodec();
const JSON_CODEC = new JsonCodec();

/** A real HTTP server that takes OTLP and answers as it is told. */
export class OtlpReceiver {
  readonly requests: ReceivedRequest[] = [];
  answer: (signal: Signal) => Answer = () => ({});
  /** In place of `answer`, where an answer depends on what was sent; `undefined` for the one that `answer` gives. */
  answerTo: ((request: ExportRequest, body: Buffer) => Answer | undefined) | undefined;

  /** @param port any free one where it is left out */
  static async listen(port = 0): Promise<OtlpReceiver> {
    const server = http.createServer();
    const receiver = new OtlpReceiver(server);
    server.on('request', (request, response) => receiver.take(request, response));
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return receiver;
  }

  private constructor(private readonly server: http.Server) {}

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  /** Span names that were accepted, in order. */
  get spanNames(): string[] {
    return this.accepted('traces').flatMap((request) =>
      request.signal === 'traces'
        ? request.resources.flatMap((resource) =>
            resource.scopes.flatMap((scope) => scope.records.map((span) => span.name)),
          )
        : [],
    );
  }

  /** Trace and span ids of the spans that were accepted, in order. */
  get spanIds(): string[] {
    return this.accepted('traces').flatMap((request) =>
      request.signal === 'traces'
        ? request.resources.flatMap((resource) =>
            resource.scopes.flatMap((scope) => scope.records.map(({ traceId, spanId }) => `${traceId} ${spanId}`)),
          )
        : [],
    );
  }

  /** Events of the spans that were accepted, by span name. */
  get spanEvents(): Record<string, string[]> {
    const events: Record<string, string[]> = {};
    for (const request of this.accepted('traces')) {
      if (request.signal !== 'traces') continue;
      for (const { scopes } of request.resources) {
        for (const { records } of scopes) {
          for (const span of records) events[span.name] = span.events.map((event) => event.name);
        }
      }
    }
    return events;
  }

  /** Bodies of the log records that were accepted, in order. */
  get logBodies(): unknown[] {
    return this.accepted('logs').flatMap((request) =>
      request.signal === 'logs'
        ? request.resources.flatMap((resource) =>
            resource.scopes.flatMap((scope) => scope.records.map((record) => record.body)),
          )
        : [],
    );
  }

  accepted(signal: Signal): ExportRequest[] {
    return this.requests
      .filter(
        (request) =>
          request.signal === signal &&
          (request.answer.status ?? 200) === 200 &&
          !request.answer.isSilent &&
          !request.answer.isCutOff,
      )
      .map(({ headers, body }) => decode(signal, headers, body));
  }

  private take(request: http.IncomingMessage, response: http.ServerResponse): void {
    const signal = request.url?.endsWith('/logs') ? 'logs' : 'traces';
    let answer = this.answer(signal);
    const chunks: Buffer[] = [];
    request.on('data', (chunk) => {
      chunks.push(chunk);
      if (answer.isCutOff === true) request.destroy();
    });
    request.on('close', () => {
      if (answer.isCutOff === true) this.requests.push({ signal, headers: request.headers, body: NO_BODY, answer });
    });
    request.on('end', () => {
      if (answer.isCutOff === true) return;
      const body = Buffer.concat(chunks);
      answer = this.answerTo?.(decode(signal, request.headers, body), body) ?? answer;
      this.requests.push({ signal, headers: request.headers, body, answer });
      const respond = () => response.writeHead(answer.status ?? 200, answer.headers).end(answer.body);
      if (answer.delayMs !== undefined) setTimeout(respond, answer.delayMs);
      else if (answer.isSilent !== true) respond();
    });
  }
}

function decode(signal: Signal, headers: http.IncomingHttpHeaders, body: Buffer): ExportRequest {
  const plain = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
  return (headers['content-type'] === 'application/json' ? JSON_CODEC : PROTOBUF).decode(signal, plain);
}
