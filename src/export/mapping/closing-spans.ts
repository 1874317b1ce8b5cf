import { type Attributes, SpanKind, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import type { MappingSwitches } from '../../config/mapping-options.js';
import type { Resource } from '../../record/attributes.js';
import { spanIdOf } from '../../record/span-id-table.js';
import { invocationIdOf, type SpanId, type UnixNano } from '../../record/telemetry-record.js';
import { learnStatement, type Redactor } from '../../redaction/redactor.js';
import type { InvocationSummary, RunSummary } from '../../run/verdict.js';
import type { ResourceMap } from '../wire/export-group.js';
import type { WindowWriter } from '../wire/item-window.js';
import { encodeAttributes, RECORD, SPAN, type SpanEvents } from '../wire/wire-writer.js';
import type { CommandAttributes } from './command-attributes.js';
import type { EventBuffer } from './event-buffer.js';
import { EVENT_TYPE } from './exported-names.js';
import { halvesOf, hrTimeOf, type IdHalves, isBefore, isSameId, type StartLine, type Time } from './mapped-record.js';
import type { NodeIndex } from './node-index.js';
import {
  eventTimeOf,
  movedEvent,
  type SpanHead,
  type SpanWriter,
  writeSpanHead,
  writeSpanTail,
} from './plain-writer.js';
import { type ReportedInvocation, reportedInvocation } from './span-outcomes.js';
import type { MissingParent, MissingParents, SpanTree } from './span-tree.js';

/** What a run remembers, as far as its end needs it. */
export interface ClosingMemory {
  readonly switches: MappingSwitches;
  readonly tree: SpanTree;
  readonly nodes: NodeIndex;
  readonly commands: CommandAttributes;
  readonly missingParents: MissingParents;
  readonly buffer: EventBuffer;
  readonly redactor: Redactor;
  readonly resources: ResourceMap;
  readonly spans: SpanWriter;
  readonly windows: WindowWriter;
}

/** A span that events may be moved to. */
interface Adopter {
  readonly id: IdHalves;
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
}

/** An invocation whose own span never came or never ended, and the id that it has. */
interface UnendedInvocation extends InvocationSummary, Adopter {}

/** A span whose end never came, and the one that it is to have. */
interface Unfinished {
  readonly start: StartLine;
  readonly end: Time;
  readonly invocation: InvocationSummary | undefined;
  readonly events: SpanEvents;
}

/** What a trace lacks as its run ends. */
interface Missing {
  readonly parents: readonly MissingParent[];
  readonly open: readonly { readonly id: IdHalves; readonly start: StartLine }[];
  readonly invocations: readonly UnendedInvocation[];
}

/** Makes what closes a run's trace. */
export class ClosingSpans {
  constructor(private readonly memory: ClosingMemory) {}

  /**
   * Writes spans in place of those that never came, and those that never ended, anchored at the log's length. What is remembered
   * stays as it was: the run may go on.
   * @param latest time of any record of the run.
   */
  write(run: RunSummary, latest: Time): void {
    const { tree } = this.memory;
    const buffer = this.memory.buffer.copy();
    const unended = unendedOf(run);
    const { parents, open, invocations } = this.find(run);
    for (const one of parents) this.writeMissing(one, run, buffer);
    adoptOrphanEvents(tree, buffer, unended);
    for (const { id, start } of open) {
      const invocation = unended.find((one) => isSameId(one.id, id));
      const end = invocation === undefined ? latest : hrTimeOf(invocation.endTimeUnixNano);
      this.writeUnfinished(run, { start, end, invocation, events: buffer.take(id[0], id[1]) });
    }
    for (const one of invocations) this.writeInvocation(run, one, buffer);
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
    const { switches, tree, missingParents } = this.memory;
    if (!switches.gaps) return { parents: [], open: [], invocations: [] };
    const ids = run.invocations.flatMap(({ spanId }) => (spanId === null ? [] : [halvesOf(spanId)]));
    const parents = missingParents
      .list()
      .filter(({ spanHigh, spanLow }) => !ids.some((id) => isSameId(id, [spanHigh, spanLow])));
    const open = tree.openStarts().map((start) => {
      const { spanHigh, spanLow } = start.read();
      return { start, id: [spanHigh, spanLow] as const };
    });
    const started = new Set(open.map(({ id }) => spanIdOf(id[0], id[1])));
    const invocations = unendedOf(run).filter(
      ({ id }) => !started.has(spanIdOf(id[0], id[1])) && !tree.isSent(id[0], id[1]),
    );
    return { parents, open, invocations };
  }

  /** A span in place of one that never came, so that its children have a parent. */
  private writeMissing(missing: MissingParent, run: RunSummary, buffer: EventBuffer): void {
    const { switches, nodes } = this.memory;
    const { spanHigh, spanLow, phase, uniqueId } = missing;
    const node = switches.verdicts ? uniqueId : undefined;
    const isCanceled = node !== undefined && nodes.interruptionOfPhase(node, missing) !== 'none';
    const attributes: Attributes = { 'run_bridge.synthetic': true };
    if (phase !== undefined) attributes.phase = phase;
    else if (uniqueId !== undefined) attributes.unique_id = uniqueId;
    if (isCanceled) attributes['error.type'] = 'canceled';
    this.writeSynthetic(run, missing.resource, {
      id: [spanHigh, spanLow],
      parent: idOrNone(invocationAround(missing, run.invocations)?.spanId ?? null),
      name: phase === undefined ? 'missing span' : `Phase: ${phase.replace(/^EXECUTION_PHASE_/, '')}`,
      kind: SpanKind.INTERNAL,
      start: [missing.startSeconds, missing.startNanos],
      end: [missing.endSeconds, missing.endNanos],
      attributes,
      events: buffer.take(spanHigh, spanLow),
      status: isCanceled ? { code: SpanStatusCode.ERROR, message: 'canceled' } : { code: SpanStatusCode.UNSET },
    });
  }

  /** A span whose run is over without its end; none where its start turns out to be damaged. */
  private writeUnfinished(run: RunSummary, { start, end, invocation, events }: Unfinished): void {
    const { redactor, spans, windows } = this.memory;
    const { resource } = start;
    const line = start.read();
    const { startSeconds, startNanos } = line;
    const isBackwards = isBefore(end[0], end[1], startSeconds, startNanos);
    const [endSeconds, endNanos] = isBackwards ? [startSeconds, startNanos] : end;
    const id = [line.spanHigh, line.spanLow] as const;
    const reported = invocation === undefined ? undefined : this.reported({ ...invocation, id, resource });
    // A statement is otherwise known with the end of its span; its name may mention what is in it.
    learnStatement(line, redactor);
    if (!spans.write(windows.begin(), line, resource, events, { endSeconds, endNanos, reported })) return;
    windows.add('traces', this.memory.resources.map(resource), run.logBytes);
  }

  /** A span for an invocation whose own never came, so that the trace has its root and its verdict. */
  private writeInvocation(run: RunSummary, invocation: UnendedInvocation, buffer: EventBuffer): void {
    const reported = this.reported(invocation);
    this.writeSynthetic(run, invocation.resource, {
      id: invocation.id,
      parent: idOrNone(invocation.outerParentSpanId),
      name: invocation.command === null ? NAME : `${NAME} (${invocation.command})`,
      kind: SpanKind.INTERNAL,
      start: hrTimeOf(invocation.startTimeUnixNano),
      end: hrTimeOf(invocation.endTimeUnixNano),
      status: reported.outcome.status,
      attributes: {
        event_type: EVENT_TYPE.invocation,
        invocation_id: invocationIdOf(run.traceId),
        'run_bridge.synthetic': true,
        ...reported.attributes,
      },
      events: buffer.take(invocation.id[0], invocation.id[1]),
    });
  }

  private reported(invocation: InvocationSummary & { readonly id: IdHalves }): ReportedInvocation {
    const { commands, redactor } = this.memory;
    const reported = reportedInvocation(invocation, redactor);
    const { id, resource, command, verdict } = invocation;
    if (verdict !== null) commands.write({ id, resource, word: command, verdict }, reported.attributes);
    return reported;
  }

  private writeSynthetic({ traceId, logBytes }: RunSummary, from: Resource, span: SyntheticSpan): void {
    const { resources, windows } = this.memory;
    const out = windows.begin();
    out.tag(RECORD);
    const start = out.open();
    writeSpanHead(out, { traceId, ...span });
    encodeAttributes(out, SPAN.attributes, span.attributes);
    writeSpanTail(out, span.events, { status: span.status, event: undefined });
    out.close(start);
    windows.add('traces', resources.map(from), logBytes);
  }
}

/** A span that has no line. */
interface SyntheticSpan extends Omit<SpanHead, 'traceId'> {
  readonly attributes: Attributes;
  readonly events: SpanEvents;
  readonly status: SpanStatus;
}

function idOrNone(id: SpanId | null): IdHalves | undefined {
  return id === null ? undefined : halvesOf(id);
}

/**
 * Events of spans that never came go to the invocation at whose time they happened, as it closes. (An interrupted node's
 * phase never ends, so over OTLP it never comes, but the message that says why does.)
 */
export function adoptOrphanEvents(tree: SpanTree, buffer: EventBuffer, invocations: readonly Adopter[]): void {
  for (const id of buffer.waitingSpans()) {
    if (tree.knows(id[0], id[1]) || invocations.some((one) => isSameId(one.id, id))) continue;
    for (const event of buffer.take(id[0], id[1]).texts()) {
      const time = eventTimeOf(event);
      const adopter = invocations.find((by) => time >= by.startTimeUnixNano && time <= by.endTimeUnixNano);
      if (adopter === undefined) buffer.addText(id[0], id[1], event);
      else buffer.addText(adopter.id[0], adopter.id[1], movedEvent(event, id));
    }
  }
}

/** Invocations whose end never came. */
function unendedOf(run: RunSummary): readonly UnendedInvocation[] {
  return run.invocations.flatMap((invocation) => {
    const { spanId, hasInvocationEnd } = invocation;
    return spanId === null || hasInvocationEnd ? [] : [{ ...invocation, id: halvesOf(spanId) }];
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
