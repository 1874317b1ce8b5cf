import { type Link, type Attributes as OtelAttributes, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { ATTR_CICD_PIPELINE_RESULT } from '@opentelemetry/semantic-conventions/incubating';
import type { Resource } from '../../record/resource.js';
import type { SpanEnd, SpanStart } from '../../record/telemetry-record.js';
import type { UnixNano } from '../../record/unix-nano.js';
import { FAIL_FAST } from '../../run/verdict.js';
import type { Redactor } from '../redaction/redactor.js';
import type { SpanEvents } from './event-buffer.js';
import { EVENT_TYPE } from './event-types.js';
import { flattenAttributes } from './flatten-attributes.js';
import { PIPELINE_RESULTS } from './invocation-span.js';
import { MappedSpan, spanContextOf } from './mapped-span.js';
import type { MappingSwitches } from './mapping-switches.js';
import { writeNodeAttributes } from './node-attributes.js';
import type { NodeIndex } from './node-index.js';
import { writeStatement } from './query-attributes.js';
import type { ResourceMap } from './resource-map.js';
import { isStructuralName, stableSpanName } from './span-name.js';
import { type SpanOutcome, SpanOutcomes } from './span-outcome.js';

/** Makes OTel spans of span records. */
export class SpanMapper {
  readonly outcomes: SpanOutcomes;

  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
    private readonly nodes: NodeIndex,
    private readonly resources: ResourceMap,
  ) {
    this.outcomes = new SpanOutcomes(nodes, redactor, switches);
  }

  ended(record: SpanEnd, resource: Resource, events: SpanEvents): MappedSpan {
    const attributes = this.attributesOf(record);
    const outcome = this.outcomes.of(record, attributes);
    if (record.eventType === EVENT_TYPE.invocation) {
      const isFailed = outcome.status.code === SpanStatusCode.ERROR;
      attributes[ATTR_CICD_PIPELINE_RESULT] = PIPELINE_RESULTS[isFailed ? this.failureOf(record) : 'success'];
    }
    if (record.eventType === EVENT_TYPE.nodeProcessed) {
      writeNodeAttributes(record, { nodes: this.nodes, switches: this.switches, verdict: outcome.verdict }, attributes);
    }
    return this.build(record, record.endTimeUnixNano, resource, attributes, outcome, events);
  }

  /** What a command came to that ended with errors: it was interrupted, unless it was to stop by itself at the first failure. */
  private failureOf({ attributes }: SpanEnd): 'error' | 'canceled' {
    return this.nodes.wasInterrupted && !FAIL_FAST.test(attributes.text('raw_command') ?? '') ? 'canceled' : 'error';
  }

  /** A span whose run is over without its end. @param outcome what is known of it; unset for most. */
  unfinished(
    record: SpanStart,
    endTimeUnixNano: UnixNano,
    resource: Resource,
    events: SpanEvents,
    told?: { readonly outcome: SpanOutcome; readonly attributes: OtelAttributes },
  ): MappedSpan {
    const attributes = { ...this.attributesOf(record), 'run_bridge.unfinished': true, ...told?.attributes };
    const end = endTimeUnixNano > record.startTimeUnixNano ? endTimeUnixNano : record.startTimeUnixNano;
    const outcome = told?.outcome ?? this.unfinishedOutcome(record, end, attributes);
    return this.build(record, end, resource, attributes, outcome, events);
  }

  private unfinishedOutcome(record: SpanStart, end: UnixNano, into: OtelAttributes): SpanOutcome {
    const uniqueId = record.attributes.text('unique_id');
    const interval = { ...record, endTimeUnixNano: end };
    const isNode = record.eventType === EVENT_TYPE.nodeProcessed;
    const isPhase = record.eventType === EVENT_TYPE.nodeEvaluated;
    if (uniqueId !== undefined && this.switches['true-cancellations'] && (isNode || isPhase)) {
      const sign = isNode
        ? this.nodes.interruptionOfNode(uniqueId, interval)
        : this.nodes.interruptionOfPhase(uniqueId, record.spanId);
      into['run_bridge.node.verdict'] = sign === 'none' ? 'unfinished' : 'canceled';
      if (sign !== 'none') {
        into.node_outcome = 'NODE_OUTCOME_CANCELED';
        into['error.type'] = 'canceled';
        return { status: { code: SpanStatusCode.ERROR, message: 'canceled' }, event: undefined };
      }
    }
    return { status: { code: SpanStatusCode.UNSET }, event: undefined };
  }

  private attributesOf(record: SpanStart | SpanEnd): OtelAttributes {
    const attributes: OtelAttributes = { event_type: record.eventType };
    flattenAttributes(
      record.attributes.value,
      record.eventType,
      attributes,
      this.redactor,
      this.switches['lifted-attributes'],
    );
    const isQuery = record.eventType === EVENT_TYPE.queryExecuted && this.switches['database-attributes'];
    const uniqueId = isQuery ? record.attributes.text('unique_id') : undefined;
    const relation = uniqueId === undefined ? undefined : this.nodes.relationOf(uniqueId);
    writeStatement(record.attributes, attributes, this.redactor, relation, isQuery);
    return attributes;
  }

  private build(
    record: SpanStart | SpanEnd,
    endTimeUnixNano: UnixNano,
    resource: Resource,
    attributes: OtelAttributes,
    outcome: SpanOutcome,
    events: SpanEvents,
  ): MappedSpan {
    const mapped = this.resources.map(resource);
    const spanEvents = events.events.map((waiting) => waiting.event);
    if (outcome.event !== undefined) spanEvents.push(outcome.event);
    return new MappedSpan({
      traceId: record.traceId,
      spanId: record.spanId,
      parentSpanId: record.parentSpanId,
      name: this.nameOf(record, attributes),
      kind: record.eventType === EVENT_TYPE.queryExecuted ? SpanKind.CLIENT : SpanKind.INTERNAL,
      startTimeUnixNano: record.startTimeUnixNano,
      endTimeUnixNano,
      status: outcome.status,
      attributes,
      links: this.linksOf(record),
      events: spanEvents,
      droppedEventsCount: events.droppedCount,
      resource: mapped.resource,
      instrumentationScope: mapped.scope,
    });
  }

  private nameOf(record: SpanStart | SpanEnd, into: OtelAttributes): string {
    const original = isStructuralName(record.eventType) ? record.spanName : this.redactor.text(record.spanName);
    if (!this.switches['stable-names']) return original;
    const evalArgs = record.eventType === EVENT_TYPE.invocation ? record.attributes.object('eval_args') : undefined;
    const command = evalArgs?.command;
    const name = stableSpanName(original, record.eventType, typeof command === 'string' ? command : undefined);
    if (name !== original) into['run_bridge.span.original_name'] = original;
    return name;
  }

  private linksOf(record: SpanStart | SpanEnd): Link[] {
    const links: Link[] = (record.links ?? []).map((link) => {
      const attributes: OtelAttributes = {};
      flattenAttributes(link.attributes.value, record.eventType, attributes, this.redactor, true);
      return { context: spanContextOf(link.traceId, link.spanId), attributes };
    });
    const upstream = this.switches['skip-links'] ? record.attributes.object('node_skip_upstream_detail') : undefined;
    const upstreamId = upstream?.upstream_unique_id;
    if (typeof upstreamId !== 'string') return links;
    const cause = this.nodes.processedSpanOf(upstreamId, record);
    if (cause === undefined) return links;
    const attributes = { 'run_bridge.link.type': 'skip_cause', unique_id: upstreamId };
    return [...links, { context: spanContextOf(record.traceId, cause), attributes }];
  }
}
