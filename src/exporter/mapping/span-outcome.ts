import { type HrTime, type Attributes as OtelAttributes, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import type { SpanEnd } from '../../record/telemetry-record.js';
import { freshnessOutcomeOf, isCanceledQuery, nodeVerdictOf, testOutcomeOf } from '../../run/node-outcome.js';
import type { NodeVerdict } from '../../run/run-summary.js';
import { withoutFrames } from '../../run/without-frames.js';
import { withoutStatement } from '../redaction/error-text.js';
import type { Redactor } from '../redaction/redactor.js';
import { EVENT_TYPE } from './event-types.js';
import { headlineOf } from './headline.js';
import { hrTimeOf } from './hr-time.js';
import type { MappingSwitches } from './mapping-switches.js';
import { nodeErrorTypeOf } from './node-error-type.js';
import type { Interval, NodeError, NodeIndex } from './node-index.js';
import type { TextAttributes } from './text-attributes.js';

/** How a span ended, as OTel says it. */
export interface SpanOutcome {
  readonly status: SpanStatus;
  /** The `exception` or warning event that goes with it. */
  readonly event: TimedEvent | undefined;
  /** What became of the node, of a node's span. */
  readonly verdict?: NodeVerdict;
}

/** A span's end as far as its failure is told from it. */
export interface EndedSpan extends Interval {
  readonly attributes: TextAttributes;
  readonly status: { readonly message: string | null } | null;
  /** `endTimeUnixNano`, where it is to be had without a bigint. */
  readonly endTime?: HrTime;
}

/** A failure before it is written: what backends group by, and what people read. */
interface Failure {
  readonly type: string;
  /** Redacted; may have several lines. */
  readonly message: string;
  /** One line for the span's status; made of the message where it is left out. */
  readonly headline?: string;
}

/** Reads how a span ended, across what the engine reports and what its logs say, and adds what it learns to the attributes. */
export class SpanOutcomes {
  constructor(
    private readonly nodes: NodeIndex,
    private readonly redactor: Redactor,
    private readonly switches: MappingSwitches,
  ) {}

  of(record: SpanEnd, into: OtelAttributes): SpanOutcome {
    switch (record.eventType) {
      case EVENT_TYPE.nodeProcessed:
      case EVENT_TYPE.nodeEvaluated:
      case EVENT_TYPE.microbatchEvaluated:
        return this.ofNode(record, into);
      case EVENT_TYPE.queryExecuted:
        return this.ofQuery(record, into);
      case EVENT_TYPE.hookProcessed:
        return this.ofHook(record, into);
      default:
        return { status: this.reportedStatus(record), event: undefined };
    }
  }

  /** A node that was reported as failed, and not interrupted. */
  ofFailedNode(span: EndedSpan, into: OtelAttributes): SpanOutcome {
    return this.failed(span, into, this.nodeFailure(span));
  }

  private ofNode(record: SpanEnd, into: OtelAttributes): SpanOutcome {
    const verdict = this.verdictOf(record);
    into['run_bridge.node.verdict'] = verdict;
    return { ...this.ofVerdict(verdict, record, into), verdict };
  }

  private ofVerdict(verdict: NodeVerdict, record: SpanEnd, into: OtelAttributes): SpanOutcome {
    if (verdict === 'canceled') return this.canceledNode(record, into);
    if (verdict === 'error' && this.switches['node-errors']) return this.ofFailedNode(record, into);
    if (verdict === 'failed') return this.ofCheck(record, into, 'failed');
    if (verdict === 'warned') return this.ofCheck(record, into, 'warned');
    return { status: this.reportedStatus(record), event: undefined };
  }

  private verdictOf(record: SpanEnd): NodeVerdict {
    const uniqueId = record.attributes.text('unique_id');
    if (!this.switches['true-cancellations'] || uniqueId === undefined) return nodeVerdictOf(record, 'none');
    const isNode = record.eventType === EVENT_TYPE.nodeProcessed;
    const sign = isNode
      ? this.nodes.interruptionOfNode(uniqueId, record)
      : this.nodes.interruptionOfPhase(uniqueId, record.spanId);
    return nodeVerdictOf(record, sign);
  }

  private canceledNode(record: SpanEnd, into: OtelAttributes): SpanOutcome {
    const reported = record.attributes.text('node_outcome');
    if (reported !== undefined && reported !== CANCELED_NODE) into['run_bridge.node_outcome.original'] = reported;
    into.node_outcome = CANCELED_NODE;
    into['error.type'] = 'canceled';
    return { status: { code: SpanStatusCode.ERROR, message: 'canceled' }, event: undefined };
  }

  private ofCheck(record: SpanEnd, into: OtelAttributes, verdict: 'failed' | 'warned'): SpanOutcome {
    const isSource =
      testOutcomeOf(record.attributes) === undefined && freshnessOutcomeOf(record.attributes) !== undefined;
    if (isSource) {
      if (!this.switches['stale-source-errors']) return { status: this.reportedStatus(record), event: undefined };
      const ageSeconds = into.age_seconds;
      const age = typeof ageSeconds === 'number' ? `, ${ageSeconds} s old` : '';
      return this.failed(record, into, { type: 'source_stale', message: `stale source (${verdict})${age}` });
    }
    const failure = this.testFailure(record, verdict);
    if (verdict === 'failed') {
      if (this.switches['test-errors']) return this.failed(record, into, failure);
    } else if (this.switches['warning-events']) {
      return { status: this.reportedStatus(record), event: warningEvent(record, failure.message) };
    }
    return { status: this.reportedStatus(record), event: undefined };
  }

  private testFailure(record: SpanEnd, verdict: 'failed' | 'warned'): Failure {
    const detail = record.attributes.object('node_test_detail') ?? {};
    const rows = detail.failing_rows;
    const count = typeof rows === 'number' ? `: ${rows} failing row${rows === 1 ? '' : 's'}` : '';
    const headline = `${detail.diff_table === undefined ? 'test' : 'unit test'} ${verdict}${count}`;
    const error = this.errorOf(record);
    const diffTable = detail.diff_table;
    const details = [
      ...(typeof diffTable === 'string' ? [this.redactor.diffTable(diffTable)] : []),
      ...(error === undefined ? [] : [this.redactor.text(withoutFrames(error.message))]),
    ];
    return { type: `test_${verdict}`, message: [headline, ...details].join('\n'), headline };
  }

  private nodeFailure(record: EndedSpan): Failure {
    const error = this.errorOf(record);
    const type = error?.codeName ?? nodeErrorTypeOf(record.attributes.text('node_error_type'));
    return { type, message: this.redactor.text(withoutFrames(error?.message ?? record.status?.message ?? 'error')) };
  }

  private errorOf(record: EndedSpan): NodeError | undefined {
    const uniqueId = record.attributes.text('unique_id');
    return uniqueId === undefined ? undefined : this.nodes.errorOf(uniqueId, record);
  }

  private ofQuery(record: SpanEnd, into: OtelAttributes): SpanOutcome {
    if (isCanceledQuery(record)) {
      into['error.type'] = 'canceled';
      return { status: { code: SpanStatusCode.ERROR, message: 'canceled' }, event: undefined };
    }
    const outcome = record.attributes.text('query_outcome');
    const hasFailed = outcome === 'QUERY_OUTCOME_ERROR' || outcome === 'QUERY_OUTCOME_CANCELED';
    if (!hasFailed || !this.switches['node-errors']) {
      return { status: this.reportedStatus(record), event: undefined };
    }
    const message = withoutFrames(
      record.attributes.text('query_error_adapter_message') ?? record.status?.message ?? '',
    );
    return this.failed(record, into, { type: this.errorClass(message), message: this.redactor.text(message) });
  }

  /**
   * The database's class of error, for example `Conversion Error`, as far as it is made of safe words; else the driver's,
   * which stands in front: `Integrity`.
   */
  private errorClass(message: string): string {
    const error = withoutStatement(message);
    const named = ERROR_CLASS.exec(error)?.[1] ?? DRIVER_CLASS.exec(error)?.[1];
    const shown = named === undefined ? undefined : this.redactor.text(named);
    return shown === undefined || shown.includes('?') ? 'query_error' : shown;
  }

  private ofHook(record: SpanEnd, into: OtelAttributes): SpanOutcome {
    const outcome = record.attributes.text('hook_outcome');
    if (outcome === 'HOOK_OUTCOME_CANCELED') {
      into['error.type'] = 'canceled';
      return { status: { code: SpanStatusCode.ERROR, message: 'canceled' }, event: undefined };
    }
    if (outcome === 'HOOK_OUTCOME_ERROR' && this.switches['node-errors']) {
      return this.failed(record, into, {
        ...this.nodeFailure(record),
        type: this.errorOf(record)?.codeName ?? 'hook_error',
      });
    }
    return { status: this.reportedStatus(record), event: undefined };
  }

  private failed(record: EndedSpan, into: OtelAttributes, failure: Failure): SpanOutcome {
    into['error.type'] = failure.type;
    return {
      status: { code: SpanStatusCode.ERROR, message: failure.headline ?? headlineOf(failure.message) },
      event: {
        name: 'exception',
        time: record.endTime ?? hrTimeOf(record.endTimeUnixNano),
        attributes: { 'exception.type': failure.type, 'exception.message': failure.message },
        droppedAttributesCount: 0,
      },
    };
  }

  /** The status as the engine sent it. */
  private reportedStatus(record: SpanEnd): SpanStatus {
    const code = record.status?.code;
    if (code === SpanStatusCode.OK) return { code };
    if (code !== SpanStatusCode.ERROR) return { code: SpanStatusCode.UNSET };
    const message = withoutFrames(record.status?.message ?? '');
    return message === '' ? { code } : { code, message: this.redactor.text(message) };
  }
}

const CANCELED_NODE = 'NODE_OUTCOME_CANCELED';
/** The status codes of ADBC, as the engine's drivers write them. */
const DRIVER_CLASS =
  /^(Unknown|NotImplemented|NotFound|AlreadyExists|InvalidArguments|InvalidState|InvalidData|Integrity|Internal|IO|Cancelled|Timeout|Unauthenticated|Unauthorized): /;
const ERROR_CLASS = /(?:^|: )([A-Z][A-Za-z]*(?: [A-Za-z]+){0,3} (?:Error|Exception))(?::|$)/m;
function warningEvent(record: SpanEnd, message: string): TimedEvent {
  return {
    name: 'test_warned',
    time: hrTimeOf(record.endTimeUnixNano),
    attributes: { message },
    droppedAttributesCount: 0,
  };
}
