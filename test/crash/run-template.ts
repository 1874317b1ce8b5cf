import type { ExportRequest, OtlpSpan } from '../../src/otlp/export-request.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';
import { invocationIdOf, parseTraceId } from '../../src/record/telemetry-record.js';
import { type SampleBody, sampleBodies } from '../fake/sample-run.js';
import { spanKey, spanNumber, traceIdOf } from './load-ids.js';

/** A body of a run, and what has to come of it. */
export interface LoadBody {
  readonly signal: Signal;
  readonly bytes: Buffer;
  /** The spans that end in it, as `spanKey` numbers them. */
  readonly spanKeys: readonly number[];
  /** Its log records: `<span id> <time>`. */
  readonly logKeys: readonly string[];
}

interface Piece {
  readonly signal: Signal;
  readonly bytes: Buffer;
  readonly ordinals: readonly number[];
  readonly logs: readonly { readonly ordinal: number; readonly timeUnixNano: bigint }[];
  readonly traceIdAt: readonly number[];
  readonly traceTextAt: readonly number[];
  readonly invocationTextAt: readonly number[];
  readonly spanIdAt: readonly (readonly [offset: number, ordinal: number, isFrame: boolean])[];
  readonly canRepeat: boolean;
}

/** Spans of a whole command: a run has them once, however often its nodes are repeated. */
const FRAME = /^\S+ (process|invocation) \(/;
/** Records in a body: small, so that a run takes many requests and a kill falls between them. */
const RECORDS_PER_BODY = 48;
const SPAN_ID_BYTES = 8;

/**
 * A real run of the engine as bodies whose ids are patched in place: making a run of its own of them costs a copy, so
 * that the load and not its making is measured.
 */
export class RunTemplate {
  /** @param sample a small or large sample with OTLP bodies */
  static read(sample: string): RunTemplate {
    return RunTemplate.of(sample, sampleBodies(sample));
  }

  /** @param bodies of one run, in the order in which the engine sent them */
  static of(sample: string, bodies: readonly Pick<SampleBody, 'signal' | 'body'>[]): RunTemplate {
    const codec = new ProtobufCodec();
    const requests = bodies.map(({ signal, body }) => codec.decode(signal, body));
    const spans = requests.flatMap((request) => (request.signal === 'traces' ? recordsOf<OtlpSpan>(request) : []));
    const logSpanIds = requests.flatMap((request) =>
      request.signal === 'logs' ? recordsOf<{ spanId: string }>(request).map(({ spanId }) => spanId) : [],
    );
    const ids = [...new Set([...spans.flatMap(({ spanId, parentSpanId }) => [spanId, parentSpanId]), ...logSpanIds])];
    const ordinals = new Map(ids.filter((id) => id !== '').map((id, ordinal) => [id, ordinal]));
    const frame = new Set(spans.filter(({ name }) => FRAME.test(name)).map(({ spanId }) => spanId));
    const ended = new Set(spans.map(({ spanId }) => spanId));
    // Spans that never end are parents of nobody else's copies either.
    for (const id of ids) if (!ended.has(id)) frame.add(id);
    const [first] = spans;
    if (first === undefined) throw new Error(`${sample} has no spans`);
    const pieces = requests.flatMap(split).map((request) => toPiece(request, first.traceId, codec, ordinals, frame));
    return new RunTemplate(sample, pieces);
  }

  private constructor(
    readonly sample: string,
    private readonly pieces: readonly Piece[],
  ) {}

  /** Bodies of a run whose nodes are not repeated. */
  get bodyCount(): number {
    return this.pieces.length;
  }

  /**
   * A run's bodies in the order in which an engine sends them.
   * @param copies how often the run has each body of spans that are nobody's process or invocation; at least 1
   */
  *bodies(runNumber: number, copies: number): Iterable<LoadBody> {
    for (let copy = 1; copy < copies; copy += 1) {
      for (const piece of this.pieces) if (piece.canRepeat) yield fill(piece, runNumber, copy);
    }
    for (const piece of this.pieces) yield fill(piece, runNumber, 0);
  }
}

function recordsOf<T>(request: ExportRequest): readonly T[] {
  return request.resources.flatMap(({ scopes }) => scopes.flatMap(({ records }) => records as unknown as T[]));
}

/** Smaller requests with the same records in the same order; commands' own spans in bodies of their own. */
function split(request: ExportRequest): ExportRequest[] {
  const parts: ExportRequest[] = [];
  for (const resource of request.resources) {
    for (const scope of resource.scopes) {
      for (const records of slices<object>(scope.records)) {
        const resources = [{ ...resource, scopes: [{ ...scope, records }] }];
        parts.push({ signal: request.signal, resources } as unknown as ExportRequest);
      }
    }
  }
  return parts;
}

function* slices<T>(records: readonly T[]): Iterable<readonly T[]> {
  let slice: T[] = [];
  const isFrame = (record: T) => FRAME.test((record as { name?: string }).name ?? '');
  for (const record of records) {
    const [first] = slice;
    if (first !== undefined && (slice.length === RECORDS_PER_BODY || isFrame(first) !== isFrame(record))) {
      yield slice;
      slice = [];
    }
    slice.push(record);
  }
  if (slice.length > 0) yield slice;
}

function toPiece(
  request: ExportRequest,
  traceId: string,
  codec: ProtobufCodec,
  ordinals: ReadonlyMap<string, number>,
  frame: ReadonlySet<string>,
): Piece {
  const bytes = Buffer.from(codec.encode(request));
  const parsed = parseTraceId(traceId);
  const invocationId = parsed === undefined ? '' : invocationIdOf(parsed);
  const spans = request.signal === 'traces' ? recordsOf<OtlpSpan>(request) : [];
  const logs = request.signal === 'logs' ? recordsOf<{ spanId: string; timeUnixNano: bigint }>(request) : [];
  return {
    signal: request.signal,
    bytes,
    ordinals: spans.map(({ spanId }) => ordinals.get(spanId) ?? -1),
    logs: logs.map(({ spanId, timeUnixNano }) => ({ ordinal: ordinals.get(spanId) ?? -1, timeUnixNano })),
    traceIdAt: offsetsOf(bytes, Buffer.from(traceId, 'hex')),
    traceTextAt: offsetsOf(bytes, Buffer.from(traceId)),
    invocationTextAt: invocationId === '' ? [] : offsetsOf(bytes, Buffer.from(invocationId)),
    spanIdAt: spanIdsIn(bytes, ordinals, frame),
    canRepeat: spans.length > 0 && !spans.some(({ spanId }) => frame.has(spanId)),
  };
}

function offsetsOf(bytes: Buffer, wanted: Buffer): number[] {
  const offsets: number[] = [];
  for (let at = bytes.indexOf(wanted); at !== -1; at = bytes.indexOf(wanted, at + wanted.length)) offsets.push(at);
  return offsets;
}

/** Where ids of spans are: eight bytes behind their length. A large run has too many to look for each by itself. */
function spanIdsIn(
  bytes: Buffer,
  ordinals: ReadonlyMap<string, number>,
  frame: ReadonlySet<string>,
): (readonly [offset: number, ordinal: number, isFrame: boolean])[] {
  const found: (readonly [number, number, boolean])[] = [];
  for (let at = bytes.indexOf(SPAN_ID_BYTES); at !== -1; at = bytes.indexOf(SPAN_ID_BYTES, at + 1)) {
    const id = bytes.toString('hex', at + 1, at + 1 + SPAN_ID_BYTES);
    const ordinal = ordinals.get(id);
    if (ordinal !== undefined) found.push([at + 1, ordinal, frame.has(id)]);
  }
  return found;
}

function fill(piece: Piece, runNumber: number, copy: number): LoadBody {
  const bytes = Buffer.from(piece.bytes);
  const traceId = traceIdOf(runNumber);
  const text = parseTraceId(traceId.toString('hex'));
  for (const at of piece.traceIdAt) traceId.copy(bytes, at);
  for (const at of piece.traceTextAt) bytes.write(text ?? '', at);
  for (const at of piece.invocationTextAt) bytes.write(text === undefined ? '' : invocationIdOf(text), at);
  for (const [at, ordinal, isFrame] of piece.spanIdAt) {
    bytes.writeUInt32BE(runNumber, at);
    bytes.writeUInt32BE(spanNumber(isFrame ? 0 : copy, ordinal), at + 4);
  }
  const spanKeys = piece.ordinals.map((ordinal) => spanKey(runNumber, spanNumber(copy, ordinal)));
  const logKeys = piece.logs.map(({ ordinal, timeUnixNano }) => {
    const id = Buffer.alloc(8);
    id.writeUInt32BE(runNumber, 0);
    id.writeUInt32BE(spanNumber(copy, ordinal), 4);
    return `${id.toString('hex')} ${timeUnixNano}`;
  });
  return { signal: piece.signal, bytes, spanKeys, logKeys };
}
