import { type Attributes, SpanKind, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import { resourceFromAttributes } from '@opentelemetry/resources';
import {
  ATTR_CICD_PIPELINE_NAME,
  ATTR_CICD_PIPELINE_RUN_ID,
  ATTR_CICD_PIPELINE_RUN_URL_FULL,
  ATTR_DEPLOYMENT_ENVIRONMENT_NAME,
} from '@opentelemetry/semantic-conventions/incubating';
import { DEFAULT_MAPPING_OPTIONS, type MappingOptions, type MappingSwitches } from '../../config/mapping-options.js';
import { type Resource, type ResourceValue, resourceKey, stepIdOf } from '../../record/attributes.js';
import { invocationIdOf, type SpanId, type TraceId, type UnixNano } from '../../record/telemetry-record.js';
import { KnownNames, SharedTexts } from '../../redaction/known-names.js';
import { learnStatement, Redactor } from '../../redaction/redactor.js';
import type { InvocationSummary, RunSummary } from '../../run/verdict.js';
import type { RunOrigin } from '../../storage/trace-catalog.js';
import { EventMappings } from '../lines/event-mappings.js';
import { LineIntake, type LineStart } from '../lines/line-intake.js';
import { HeldSpans, LineReader } from '../lines/line-reader.js';
import type { LoggedLines, MappedItem, RunMapper } from '../run-mapper.js';
import { type EncodedSpan, ExportGroup, ItemEncoder } from '../wire/encoded-items.js';
import {
  encodeAttributes,
  encodeSpanEnd,
  RECORD,
  SPAN,
  type SpanEvents,
  type WireWriter,
} from '../wire/wire-writer.js';
import { EVENT_TYPE } from './event-types.js';
import { EventBuffer, eventTimeOf, LogWriter, movedEvent } from './log-writer.js';
import {
  halvesOf,
  hrTimeOf,
  type IdHalves,
  isBefore,
  type MissingParent,
  MissingParents,
  NodeIndex,
  SpanTree,
  spanIdOf,
} from './span-tree.js';
import { reportedInvocation, SpanWriter } from './span-writer.js';

/** OTel resources of the engine's, with the run that they belong to and the bridge's overrides. A run has one or a few. */
export class ResourceMap {
  private byIdentity = new WeakMap<Resource, ExportGroup>();
  private readonly byKey = new Map<string, ExportGroup>();

  private origins: readonly RunOrigin[] = [];
  /** Whether a resource named an unknown step. */
  lacksOrigin = false;

  /** @param publicUrl the public address of the pages; `null` if not configured */
  constructor(
    private readonly overrides: Readonly<Record<string, ResourceValue>>,
    private readonly publicUrl: string | null,
  ) {}

  /** Sets the runs that the trace's commands belong to, for everything mapped from now on. */
  setOrigins(origins: readonly RunOrigin[]): void {
    this.origins = origins;
    this.lacksOrigin = false;
    this.byIdentity = new WeakMap();
    this.byKey.clear();
  }

  map(resource: Resource): ExportGroup {
    const known = this.byIdentity.get(resource);
    if (known !== undefined) return known;
    const key = resourceKey(resource);
    const mapped = this.byKey.get(key) ?? this.create(resource);
    this.byIdentity.set(resource, mapped);
    this.byKey.set(key, mapped);
    return mapped;
  }

  private create(resource: Resource): ExportGroup {
    const attributes = Object.entries({
      ...DEFAULTS,
      ...this.runAttributes(resource),
      ...resource.attributes,
      ...this.overrides,
      ...MAPPED_BY,
    }).map(([name, value]) => [name, otelValue(value)] as const);
    const { name, version } = resource.scope;
    return new ExportGroup(resourceFromAttributes(Object.fromEntries(attributes)), {
      name: name === '' ? UNKNOWN_SCOPE : name,
      ...(version === '' ? {} : { version }),
    });
  }

  /** Attributes of the run, by the step that the resource names; without one only if the trace has one run. */
  private runAttributes(resource: Resource): Readonly<Record<string, ResourceValue>> {
    const { origins, publicUrl } = this;
    const stepId = stepIdOf(resource);
    const [first] = origins;
    const isSole = stepId === null && origins.every(({ runId }) => runId === first?.runId);
    const origin = isSole ? first : origins.find((one) => one.stepId === stepId);
    this.lacksOrigin ||= origin === undefined && stepId !== null;
    if (origin === undefined) return {};
    const url = publicUrl === null ? undefined : `${publicUrl.replace(/\/+$/, '')}/runs/${origin.runId}`;
    return {
      [ATTR_CICD_PIPELINE_NAME]: origin.job,
      [ATTR_CICD_PIPELINE_RUN_ID]: String(origin.runId),
      ...(origin.environment !== null && { [ATTR_DEPLOYMENT_ENVIRONMENT_NAME]: origin.environment }),
      ...(url !== undefined && { [ATTR_CICD_PIPELINE_RUN_URL_FULL]: url, 'run_bridge.run.url': url }),
    };
  }
}

/** Records from files come without a resource; backends list runs by this name. */
const DEFAULTS = { 'service.name': 'dbt' };

/** Says that a bridge has mapped these spans already: another bridge that receives them passes them on as they are. */
const MAPPED_BY = { 'telemetry.distro.name': 'run-bridge' };

/** The scope of records from files, which do not carry one. */
const UNKNOWN_SCOPE = 'run-bridge';

/** OTel's lists have values of one type; a mixed one is written as texts. */
function otelValue(value: ResourceValue): string | number | boolean | string[] | number[] | boolean[] {
  if (typeof value !== 'object') return value;
  if (value.every((item) => typeof item === 'number')) return [...value];
  if (value.every((item) => typeof item === 'boolean')) return [...value];
  return value.map(String);
}

/** What a run remembers, as far as its end needs it. */
export interface ClosingMemory {
  readonly switches: MappingSwitches;
  readonly tree: SpanTree<LineStart>;
  readonly nodes: NodeIndex;
  readonly missingParents: MissingParents;
  readonly buffer: EventBuffer;
  readonly redactor: Redactor;
  readonly resources: ResourceMap;
  readonly intake: LineIntake;
  readonly spans: SpanWriter;
  readonly encoder: ItemEncoder;
}

/** A time in seconds and nanoseconds. */
type Time = readonly [seconds: number, nanos: number];

/** An invocation whose own span never came, and the id that it is to have. */
interface UnreportedInvocation {
  readonly id: IdHalves;
  readonly invocation: InvocationSummary;
}

/** What a trace lacks as its run ends. */
interface Missing {
  readonly parents: readonly MissingParent[];
  readonly open: readonly { readonly id: IdHalves; readonly start: LineStart }[];
  readonly invocations: readonly UnreportedInvocation[];
}

/** Makes what closes a run's trace. */
export class ClosingSpans {
  constructor(private readonly memory: ClosingMemory) {}

  /**
   * Spans in place of those that never came, and those that never ended. What is remembered stays as it was: the run
   * may go on.
   * @param latest time of any record of the run.
   */
  spans(run: RunSummary, latest: Time): readonly EncodedSpan[] {
    const { tree } = this.memory;
    const buffer = this.memory.buffer.copy();
    const unended = unendedOf(run);
    const { parents, open, invocations } = this.find(run);
    const spans = parents.map((one) => this.missingSpan(one, run, buffer));
    adoptOrphanEvents(
      tree,
      buffer,
      unended.map(({ id, invocation }) => ({
        id,
        startTimeUnixNano: invocation.startTimeUnixNano,
        endTimeUnixNano: invocation.endTimeUnixNano,
      })),
    );
    for (const { id, start } of open) {
      const invocation = unended.find((one) => isSame(one.id, id))?.invocation;
      const end = invocation === undefined ? latest : hrTimeOf(invocation.endTimeUnixNano);
      const span = this.unfinishedSpan(start, end, invocation, buffer.take(id[0], id[1]));
      if (span !== undefined) spans.push(span);
    }
    for (const one of invocations) spans.push(this.invocationSpan(run.traceId, one, buffer));
    return spans;
  }

  /** Ids of those spans. */
  spanIds(run: RunSummary): readonly SpanId[] {
    const { parents, open, invocations } = this.find(run);
    return [
      ...parents.map(({ spanHigh, spanLow }) => spanIdOf(spanHigh, spanLow)),
      ...[...open, ...invocations].map(({ id }) => spanIdOf(id[0], id[1])),
    ];
  }

  private find(run: RunSummary): Missing {
    const { switches, tree, missingParents, intake } = this.memory;
    const ids = run.invocations.flatMap(({ spanId }) => (spanId === null ? [] : [halvesOf(spanId)]));
    const parents = missingParents
      .list()
      .filter(({ spanHigh, spanLow }) => !ids.some((id) => isSame(id, [spanHigh, spanLow])));
    const open = tree.openStarts().map((start) => {
      const { spanHigh, spanLow } = intake.read(start);
      return { start, id: [spanHigh, spanLow] as const };
    });
    const started = new Set(open.map(({ id }) => spanIdOf(id[0], id[1])));
    const invocations = unendedOf(run).filter(
      ({ id }) => !started.has(spanIdOf(id[0], id[1])) && !tree.isSent(id[0], id[1]),
    );
    return {
      parents: switches['synthetic-parents'] ? parents : [],
      open: switches['unfinished-spans'] ? open : [],
      invocations: switches['synthetic-invocations'] ? invocations : [],
    };
  }

  /** A span in place of one that never came, so that its children have a parent. */
  private missingSpan(missing: MissingParent, run: RunSummary, buffer: EventBuffer): EncodedSpan {
    const { switches, nodes } = this.memory;
    const { spanHigh, spanLow, phase, uniqueId } = missing;
    const node = switches['true-cancellations'] ? uniqueId : undefined;
    const isCanceled = node !== undefined && nodes.interruptionOfPhase(node, missing) !== 'none';
    const attributes: Attributes = { 'run_bridge.synthetic': true };
    if (phase !== undefined) attributes.phase = phase;
    else if (uniqueId !== undefined) attributes.unique_id = uniqueId;
    if (isCanceled) attributes['error.type'] = 'canceled';
    return this.synthetic(missing.resource, {
      traceId: run.traceId,
      id: [spanHigh, spanLow],
      parentSpanId: invocationAround(missing, run.invocations)?.spanId ?? null,
      name: phase === undefined ? 'missing span' : `Phase: ${phase.replace(/^EXECUTION_PHASE_/, '')}`,
      startTime: [missing.startSeconds, missing.startNanos],
      endTime: [missing.endSeconds, missing.endNanos],
      attributes,
      events: buffer.take(spanHigh, spanLow),
      status: isCanceled ? { code: SpanStatusCode.ERROR, message: 'canceled' } : { code: SpanStatusCode.UNSET },
    });
  }

  /** A span whose run is over without its end. */
  private unfinishedSpan(
    start: LineStart,
    end: Time,
    invocation: InvocationSummary | undefined,
    events: SpanEvents,
  ): EncodedSpan | undefined {
    const { redactor, intake, spans, encoder, resources } = this.memory;
    const line = intake.read(start);
    const { startSeconds, startNanos } = line;
    const isBackwards = isBefore(end[0], end[1], startSeconds, startNanos);
    const [endSeconds, endNanos] = isBackwards ? [startSeconds, startNanos] : end;
    const reported = invocation === undefined ? undefined : reportedInvocation(invocation, redactor);
    // A statement is otherwise known with the end of its span; its name may mention what is in it.
    learnStatement(line, redactor);
    const encode = (out: WireWriter) => spans.write(out, line, events, { endSeconds, endNanos, reported });
    return encoder.spanOf(resources.map(start.resource), encode);
  }

  /** A span for an invocation whose own never came, so that the trace has its root and its verdict. */
  private invocationSpan(traceId: TraceId, { id, invocation }: UnreportedInvocation, buffer: EventBuffer): EncodedSpan {
    const reported = reportedInvocation(invocation, this.memory.redactor);
    return this.synthetic(invocation.resource, {
      traceId,
      id,
      parentSpanId: invocation.outerParentSpanId,
      name: invocation.command === null ? NAME : `${NAME} (${invocation.command})`,
      startTime: hrTimeOf(invocation.startTimeUnixNano),
      endTime: hrTimeOf(invocation.endTimeUnixNano),
      status: reported.outcome.status,
      attributes: {
        event_type: EVENT_TYPE.invocation,
        invocation_id: invocationIdOf(traceId),
        'run_bridge.synthetic': true,
        ...reported.attributes,
      },
      events: buffer.take(id[0], id[1]),
    });
  }

  private synthetic(from: Resource, span: SyntheticSpan): EncodedSpan {
    const { resources, encoder } = this.memory;
    return encoder.span(resources.map(from), (out) => writeSynthetic(out, span));
  }
}

/** A span that has no line. */
interface SyntheticSpan {
  readonly traceId: TraceId;
  readonly id: IdHalves;
  readonly parentSpanId: SpanId | null;
  readonly name: string;
  readonly startTime: Time;
  readonly endTime: Time;
  readonly attributes: Attributes;
  readonly events: SpanEvents;
  readonly status: SpanStatus;
}

function writeSynthetic(out: WireWriter, span: SyntheticSpan): void {
  out.tag(RECORD);
  const start = out.open();
  out.tag(SPAN.traceId);
  out.hex(span.traceId);
  out.tag(SPAN.spanId);
  out.id(span.id[0], span.id[1]);
  if (span.parentSpanId !== null) {
    out.tag(SPAN.parentSpanId);
    out.hex(span.parentSpanId);
  }
  out.tag(SPAN.name);
  out.text(span.name);
  out.tag(SPAN.kind);
  out.varint(SpanKind.INTERNAL + 1);
  out.tag(SPAN.startTime);
  out.time(span.startTime[0], span.startTime[1]);
  out.tag(SPAN.endTime);
  out.time(span.endTime[0], span.endTime[1]);
  encodeAttributes(out, SPAN.attributes, span.attributes);
  out.tag(SPAN.droppedAttributesCount);
  out.varint(0);
  for (const event of span.events.events) out.latin1(event);
  out.tag(SPAN.droppedEventsCount);
  out.varint(span.events.droppedCount);
  out.tag(SPAN.droppedLinksCount);
  out.varint(0);
  encodeSpanEnd(out, span.status);
  out.close(start);
}

/** A span that events may be moved to. */
interface Adopter {
  readonly id: IdHalves;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
}

/**
 * Events of spans that never came go to the invocation at whose time they happened, as it closes. (An interrupted node's
 * phase never ends, so over OTLP it never comes, but the message that says why does.)
 */
export function adoptOrphanEvents(tree: SpanTree, buffer: EventBuffer, invocations: readonly Adopter[]): void {
  for (const id of buffer.waitingSpans()) {
    if (tree.knows(id[0], id[1]) || invocations.some((one) => isSame(one.id, id))) continue;
    for (const event of buffer.take(id[0], id[1]).events) {
      const time = eventTimeOf(event);
      const adopter = invocations.find((by) => time >= by.startTimeUnixNano && time <= by.endTimeUnixNano);
      if (adopter === undefined) buffer.add(id[0], id[1], event);
      else buffer.add(adopter.id[0], adopter.id[1], movedEvent(event, id));
    }
  }
}

function isSame(id: IdHalves, other: IdHalves): boolean {
  return id[0] === other[0] && id[1] === other[1];
}

/** Invocations whose end never came. */
function unendedOf(run: RunSummary): readonly UnreportedInvocation[] {
  return run.invocations.flatMap((invocation) => {
    const { spanId, hasInvocationEnd } = invocation;
    return spanId === null || hasInvocationEnd ? [] : [{ id: halvesOf(spanId), invocation }];
  });
}

/** The invocation in whose time a span lies; the first one where none encloses it. */
function invocationAround(
  span: MissingParent,
  invocations: readonly InvocationSummary[],
): InvocationSummary | undefined {
  const around = invocations.find((one) => {
    const from = hrTimeOf(one.startTimeUnixNano);
    const to = hrTimeOf(one.endTimeUnixNano);
    const isBeforeIt = isBefore(span.startSeconds, span.startNanos, from[0], from[1]);
    return !isBeforeIt && !isBefore(to[0], to[1], span.endSeconds, span.endNanos);
  });
  return around ?? invocations[0];
}

/** As the engine names it, without the id. */
const NAME = 'dbt invocation';

/**
 * Maps a run onto OTel, see `docs/export.md`. What is released when depends on the records alone, not on how they are
 * cut into pushes, so that a replay gives the same items.
 */
export class OtelRunMapper implements RunMapper {
  private readonly tree: SpanTree<LineStart>;
  private readonly nodes: NodeIndex;
  private readonly missingParents: MissingParents;
  private readonly buffer: EventBuffer;
  private readonly redactor: Redactor;
  private readonly resources: ResourceMap;
  private readonly spans: SpanWriter;
  private readonly logs: LogWriter;
  /** Points at a pending line. */
  private readonly heldLine: LineReader;
  private readonly intake: LineIntake;
  private readonly encoder = new ItemEncoder();
  private readonly closing: ClosingSpans;
  private readonly held = new HeldSpans();
  private readonly holdSeconds: number;
  private readonly holdNanos: number;
  private ready: MappedItem[] = [];
  /** Items anchored before these were sent. */
  private sentTraces = 0;
  private sentLogs = 0;
  /** Latest time of any record. */
  private latestSeconds = 0;
  private latestNanos = 0;

  /** @param mappings of lines, and @param prose what was made of texts: runs may share both. */
  constructor(
    private readonly options: MappingOptions = DEFAULT_MAPPING_OPTIONS,
    mappings: EventMappings = new EventMappings(),
    prose: SharedTexts = new SharedTexts(),
  ) {
    this.tree = new SpanTree(options.maxRememberedSpans);
    this.nodes = new NodeIndex(options.maxRememberedSpans, this.tree);
    this.missingParents = new MissingParents(options.maxRememberedSpans, this.tree);
    this.buffer = new EventBuffer(options.maxEventsPerSpan, options.maxWaitingEvents);
    this.redactor = new Redactor(options.redaction, new KnownNames(), prose);
    this.resources = new ResourceMap(options.resourceOverrides, options.publicUrl);
    const { switches } = options;
    this.spans = new SpanWriter(switches, this.redactor, this.nodes);
    this.logs = new LogWriter(switches, this.redactor);
    this.heldLine = new LineReader(mappings);
    this.holdSeconds = Math.floor(options.eventHoldMs / 1000);
    this.holdNanos = (options.eventHoldMs % 1000) * 1_000_000;
    const { tree, nodes, missingParents, buffer, redactor, resources, encoder, spans } = this;
    this.intake = new LineIntake(
      { redactor, tree, nodes, missingParents },
      {
        advance: (seconds, nanos) => this.advance(seconds, nanos),
        hold: (anchorOffset, resource, endSeconds, endNanos, block) => {
          this.held.add(anchorOffset, resource, endSeconds, endNanos, block, block.lineTotal - 1);
          this.boundPending();
        },
        log: (anchorOffset, resource, line) => this.pushLog(anchorOffset, resource, line),
      },
      mappings,
    );
    const { intake } = this;
    const memory = { switches, tree, nodes, missingParents, buffer, redactor, resources };
    this.closing = new ClosingSpans({ ...memory, intake, spans, encoder });
  }

  get heldCount(): number {
    return this.held.count;
  }

  skipTo(tracesOffset: number, logsOffset: number): void {
    this.sentTraces = tracesOffset;
    this.sentLogs = logsOffset;
  }

  pushLines(lines: LoggedLines): number {
    return this.intake.push(lines);
  }

  setOrigins(origins: readonly RunOrigin[]): void {
    this.resources.setOrigins(origins);
  }

  get lacksOrigin(): boolean {
    return this.resources.lacksOrigin;
  }

  take(isQuiet: boolean): readonly MappedItem[] {
    if (isQuiet) while (this.heldCount > 0) this.releaseOldest();
    const items = this.ready;
    this.ready = [];
    return items;
  }

  finish(run: RunSummary): readonly MappedItem[] {
    const items = [...this.take(true)];
    for (const span of this.closing.spans(run, [this.latestSeconds, this.latestNanos])) {
      items.push({ signal: 'traces', anchorOffset: run.logBytes, span });
    }
    return items;
  }

  closingSpanIds(run: RunSummary): readonly string[] {
    return this.closing.spanIds(run);
  }

  private pushLog(anchorOffset: number, resource: Resource, line: LineReader): void {
    const { switches } = this.options;
    const isWanted = switches['log-records'] && anchorOffset >= this.sentLogs;
    const target = switches['span-events'] ? this.eventTarget(line) : undefined;
    if (!isWanted && target === undefined) return;
    this.logs.read(line);
    if (isWanted) {
      const log = this.encoder.log(this.resources.map(resource), (out) => this.logs.write(out, line));
      this.ready.push({ signal: 'logs', anchorOffset, log });
    }
    if (target === undefined) return;
    const { spanHigh, spanLow } = line;
    const isOwn = target[0] === spanHigh && target[1] === spanLow;
    const event = this.logs.eventText();
    this.buffer.add(target[0], target[1], isOwn ? event : movedEvent(event, [spanHigh, spanLow]));
  }

  /** The span that a log record is to be an event of: its own, or the nearest one above it that was not sent. */
  private eventTarget({ spanHigh, spanLow }: LineReader): IdHalves | undefined {
    if (spanHigh === 0 && spanLow === 0) return undefined;
    const { tree } = this;
    return tree.isSent(spanHigh, spanLow) ? tree.nearestUnsentAncestor(spanHigh, spanLow) : [spanHigh, spanLow];
  }

  private boundPending(): void {
    if (this.heldCount > this.options.maxHeldSpans) this.releaseOldest();
  }

  /** Time has passed in the run: what waited long enough is ready. */
  private advance(seconds: number, nanos: number): void {
    if (!isBefore(this.latestSeconds, this.latestNanos, seconds, nanos)) return;
    this.latestSeconds = seconds;
    this.latestNanos = nanos;
    const borrowed = nanos < this.holdNanos ? 1 : 0;
    const sinceSeconds = seconds - this.holdSeconds - borrowed;
    const sinceNanos = nanos - this.holdNanos + borrowed * NANOS_PER_SECOND;
    while (this.held.isOldestBefore(sinceSeconds, sinceNanos)) this.releaseOldest();
  }

  private releaseOldest(): void {
    const oldest = this.held.takeOldest();
    if (oldest === undefined) return;
    const { heldLine: line, buffer, tree } = this;
    const { anchorOffset, block, index } = oldest;
    line.pointAt(block, index);
    const { spanHigh, spanLow } = line;
    if (line.eventType === EVENT_TYPE.invocation) adoptOrphanEvents(tree, buffer, [adopterOf(line)]);
    const events = buffer.take(spanHigh, spanLow);
    if (anchorOffset >= this.sentTraces) {
      const write = (out: WireWriter) => this.spans.write(out, line, events);
      const span = this.encoder.spanOf(this.resources.map(oldest.resource), write);
      if (span !== undefined) this.ready.push({ signal: 'traces', anchorOffset, span });
    }
    line.forget();
    this.intake.letGo(block);
    tree.sent(spanHigh, spanLow);
  }
}

const NANOS_PER_SECOND = 1_000_000_000;

function adopterOf(line: LineReader): Parameters<typeof adoptOrphanEvents>[2][number] {
  const nanosOf = (seconds: number, nanos: number) => BigInt(seconds) * 1_000_000_000n + BigInt(nanos);
  return {
    id: [line.spanHigh, line.spanLow],
    startTimeUnixNano: nanosOf(line.startSeconds, line.startNanos),
    endTimeUnixNano: nanosOf(line.endSeconds, line.endNanos),
  };
}
