import { type Attributes as OtelAttributes, type SpanStatus, SpanStatusCode } from '@opentelemetry/api';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import { ATTR_DB_RESPONSE_STATUS_CODE } from '@opentelemetry/semantic-conventions';
import type { MappingSwitches } from '../../config/mapping-options.js';
import { counted, cut } from '../../core/text.js';
import { sqlStateOf, withoutStatement } from '../../record/error-statement.js';
import type { Redactor } from '../../redaction/redactor.js';
import {
  freshnessOutcomeOf,
  type InterruptionSign,
  isCanceledQuery,
  nodeVerdictOf,
  testOutcomeOf,
  withoutFrames,
} from '../../run/node-outcome.js';
import type { InvocationSummary, NodeVerdict } from '../../run/verdict.js';
import { EVENT_TYPE, int64Value, NO_VENDOR_CODE } from './exported-names.js';
import type { PlainRecord } from './mapped-record.js';
import type { NodeError, NodeIndex } from './node-index.js';

/** How a span whose own end never came is closed, not before its start. */
export interface Closing {
  readonly endSeconds: number;
  readonly endNanos: number;
  /** The saved state of an invocation. */
  readonly reported: ReportedInvocation | undefined;
}

/** How a span ended, as OTel says it. */
export interface SpanOutcome {
  readonly status: SpanStatus;
  /** The `exception` or warning event that goes with it. */
  readonly event: TimedEvent | undefined;
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

  /** What became of a node; `undefined` for other spans. */
  verdictOf(span: PlainRecord): NodeVerdict | undefined {
    return NODE_SPANS.has(span.eventType) ? nodeVerdictOf(span, this.interruptionSignOf(span)) : undefined;
  }

  /** @param verdict as `verdictOf` gives it */
  of(span: PlainRecord, verdict: NodeVerdict | undefined, into: OtelAttributes): SpanOutcome {
    if (verdict !== undefined) {
      into['run_bridge.node.verdict'] = verdict;
      return this.ofVerdict(verdict, span, into);
    }
    if (span.eventType === EVENT_TYPE.queryExecuted) return this.ofQuery(span, into);
    if (span.eventType === EVENT_TYPE.hookProcessed) return this.ofHook(span, into);
    return this.reported(span);
  }

  /** Of a span that never ended: unset for most. */
  ofUnfinished(span: PlainRecord, { endSeconds, endNanos, reported }: Closing, into: OtelAttributes): SpanOutcome {
    into['run_bridge.unfinished'] = true;
    Object.assign(into, reported?.attributes);
    if (reported !== undefined) return reported.outcome;
    const isPhase = span.eventType === EVENT_TYPE.nodeEvaluated;
    const isNode = isPhase || span.eventType === EVENT_TYPE.nodeProcessed;
    if (isNode && span.uniqueId !== undefined && this.switches.verdicts) {
      const { spanHigh, spanLow, startSeconds, startNanos } = span;
      const sign = isPhase
        ? this.nodes.interruptionOfPhase(span.uniqueId, span)
        : this.nodes.interruptionOfNode(span.uniqueId, {
            spanHigh,
            spanLow,
            startSeconds,
            startNanos,
            endSeconds,
            endNanos,
          });
      into['run_bridge.node.verdict'] = sign === 'none' ? 'unfinished' : 'canceled';
      if (sign !== 'none') {
        into.node_outcome = CANCELED_NODE;
        return canceled(into);
      }
    }
    return { status: { code: SpanStatusCode.UNSET }, event: undefined };
  }

  private ofVerdict(verdict: NodeVerdict, span: PlainRecord, into: OtelAttributes): SpanOutcome {
    if (verdict === 'canceled') return this.canceledNode(span, into);
    if (!this.switches.verdicts) return this.reported(span);
    if (verdict === 'error') return this.failed(span, into, this.nodeFailure(span, into));
    if (verdict === 'failed') return this.ofCheck(span, into, 'failed');
    if (verdict === 'warned') return this.ofCheck(span, into, 'warned');
    return this.reported(span);
  }

  private interruptionSignOf(span: PlainRecord): InterruptionSign {
    const { uniqueId } = span;
    if (uniqueId === undefined || !this.switches.verdicts || !this.nodes.hasInterruption(uniqueId)) {
      return 'none';
    }
    const isNode = span.eventType === EVENT_TYPE.nodeProcessed;
    return isNode ? this.nodes.interruptionOfNode(uniqueId, span) : this.nodes.interruptionOfPhase(uniqueId, span);
  }

  private canceledNode(span: PlainRecord, into: OtelAttributes): SpanOutcome {
    const reported = span.text('node_outcome');
    if (reported !== undefined && reported !== CANCELED_NODE) into['run_bridge.node_outcome.original'] = reported;
    into.node_outcome = CANCELED_NODE;
    return canceled(into);
  }

  private ofCheck(span: PlainRecord, into: OtelAttributes, verdict: 'failed' | 'warned'): SpanOutcome {
    const isSource = testOutcomeOf(span.attributes) === undefined && freshnessOutcomeOf(span.attributes) !== undefined;
    if (isSource) {
      const ageSeconds = this.ageOf(span);
      const age = typeof ageSeconds === 'number' ? `, ${ageSeconds} s old` : '';
      return this.failed(span, into, { type: 'source_stale', message: `stale source (${verdict})${age}` });
    }
    const failure = this.testFailure(span, verdict);
    if (verdict === 'failed') return this.failed(span, into, failure);
    return { status: this.reported(span).status, event: warningEvent(span, failure.message) };
  }

  /** The age of a source in seconds, where it is exported. */
  private ageOf({ attributes }: PlainRecord): number | string | undefined {
    if (!this.switches.attributes) return undefined;
    const age = attributes.object('node_freshness_outcome')?.age_seconds ?? attributes.get('age_seconds');
    if (typeof age === 'number') return age;
    return typeof age === 'string' ? int64Value(age) : undefined;
  }

  private testFailure(span: PlainRecord, verdict: 'failed' | 'warned'): Failure {
    const detail = span.attributes.object('node_test_detail') ?? {};
    const rows = detail.failing_rows;
    const count = typeof rows === 'number' ? `: ${counted(rows, 'failing row')}` : '';
    const headline = `${detail.diff_table === undefined ? 'test' : 'unit test'} ${verdict}${count}`;
    const error = this.errorOf(span);
    const diffTable = detail.diff_table;
    const details = [
      ...(typeof diffTable === 'string' ? [this.redactor.diffTable(diffTable)] : []),
      ...(error === undefined ? [] : [this.redactor.text(withoutFrames(error.message))]),
    ];
    return { type: `test_${verdict}`, message: [headline, ...details].join('\n'), headline };
  }

  private nodeFailure(span: PlainRecord, into: OtelAttributes): Failure {
    const error = this.errorOf(span);
    const type = error?.codeName ?? nodeErrorTypeOf(span.text('node_error_type'));
    this.writeStatusCode(undefined, error?.message ?? '', into);
    return { type, message: this.redactor.text(withoutFrames(error?.message ?? span.status.message ?? 'error')) };
  }

  private errorOf(span: PlainRecord): NodeError | undefined {
    const uniqueId = span.text('unique_id');
    return uniqueId === undefined ? undefined : this.nodes.errorOf(uniqueId, span);
  }

  private ofQuery(span: PlainRecord, into: OtelAttributes): SpanOutcome {
    const outcome = span.text('query_outcome');
    if (outcome !== undefined && CANCELED.test(outcome) && isCanceledQuery(span)) return canceled(into);
    const hasFailed = outcome === 'QUERY_OUTCOME_ERROR' || outcome === 'QUERY_OUTCOME_CANCELED';
    if (!hasFailed || !this.switches.verdicts) return this.reported(span);
    const message = withoutFrames(span.text('query_error_adapter_message') ?? span.status.message ?? '');
    this.writeStatusCode(span.attributes.get('query_error_vendor_code'), message, into);
    return this.failed(span, into, { type: this.errorClass(message), message: this.redactor.text(message) });
  }

  /** The database's code of an error: the vendor's, else the SQLSTATE that stands behind the message. */
  private writeStatusCode(vendorCode: unknown, message: string, into: OtelAttributes): void {
    if (!this.switches.attributes) return;
    const hasVendorCode = typeof vendorCode === 'number' && vendorCode !== NO_VENDOR_CODE;
    const code = hasVendorCode ? String(vendorCode) : sqlStateOf(message);
    if (code !== undefined) into[ATTR_DB_RESPONSE_STATUS_CODE] = code;
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

  private ofHook(span: PlainRecord, into: OtelAttributes): SpanOutcome {
    const outcome = span.text('hook_outcome');
    if (outcome === 'HOOK_OUTCOME_CANCELED') return canceled(into);
    if (outcome === 'HOOK_OUTCOME_ERROR' && this.switches.verdicts) {
      return this.failed(span, into, {
        ...this.nodeFailure(span, into),
        type: this.errorOf(span)?.codeName ?? 'hook_error',
      });
    }
    return this.reported(span);
  }

  private failed(span: PlainRecord, into: OtelAttributes, failure: Failure): SpanOutcome {
    into['error.type'] = failure.type;
    return {
      status: { code: SpanStatusCode.ERROR, message: failure.headline ?? headlineOf(failure.message) },
      event: {
        name: 'exception',
        time: span.endTime,
        attributes: { 'exception.type': failure.type, 'exception.message': failure.message },
        droppedAttributesCount: 0,
      },
    };
  }

  /** As the engine sent it. */
  private reported(span: PlainRecord): SpanOutcome {
    const { code, message } = span.status;
    if (code === SpanStatusCode.OK) return OK;
    if (code !== SpanStatusCode.ERROR) return UNSET;
    const shown = withoutFrames(message ?? '');
    const status = shown === '' ? { code } : { code, message: this.redactor.text(shown) };
    return { status, event: undefined };
  }
}

const OK: SpanOutcome = { status: { code: SpanStatusCode.OK }, event: undefined };
const UNSET: SpanOutcome = { status: { code: SpanStatusCode.UNSET }, event: undefined };

function canceled(into: OtelAttributes): SpanOutcome {
  into['error.type'] = 'canceled';
  return { status: { code: SpanStatusCode.ERROR, message: 'canceled' }, event: undefined };
}

const NODE_SPANS: ReadonlySet<string> = new Set([
  EVENT_TYPE.nodeProcessed,
  EVENT_TYPE.nodeEvaluated,
  EVENT_TYPE.microbatchEvaluated,
]);
const CANCELED = /canceled$/i;
const CANCELED_NODE = 'NODE_OUTCOME_CANCELED';
/** The status codes of ADBC, as the engine's drivers write them. */
const DRIVER_CLASS =
  /^(Unknown|NotImplemented|NotFound|AlreadyExists|InvalidArguments|InvalidState|InvalidData|Integrity|Internal|IO|Cancelled|Timeout|Unauthenticated|Unauthorized): /;
const ERROR_CLASS = /(?:^|: )([A-Z][A-Za-z]*(?: [A-Za-z]+){0,3} (?:Error|Exception))(?::|$)/m;
/** The event of a test that warned. */
export const TEST_WARNED = 'test_warned';

function warningEvent(span: PlainRecord, message: string): TimedEvent {
  return {
    name: TEST_WARNED,
    time: span.endTime,
    attributes: { message },
    droppedAttributesCount: 0,
  };
}

/** What backends group a failed node by, of the engine's type of error: `node_error_user` for `NODE_ERROR_TYPE_USER`. */
function nodeErrorTypeOf(errorType: string | undefined): string {
  return errorType === undefined
    ? 'node_error'
    : `node_error_${errorType.replace(/^NODE_ERROR_TYPE_/, '').toLowerCase()}`;
}

/** Longest status message; the whole text is in the `exception` event. */
const MAX_HEADLINE_LENGTH = 512;

/**
 * What a span's status says of a message: its first two lines in one, which is where the engine and databases say what is
 * wrong. At most 512 UTF-16 units and `…`.
 */
function headlineOf(message: string): string {
  if (message.length <= MAX_HEADLINE_LENGTH && !message.includes('\n')) {
    // Most messages, without lists made of them.
    const line = message.trim();
    return line.startsWith('LINE ') ? '' : line;
  }
  const lines = message.split('\n').map((record) => record.trim());
  const headline = lines
    .filter((line) => line !== '' && !line.startsWith('LINE '))
    .slice(0, 2)
    .join(' ');
  return cut(headline, MAX_HEADLINE_LENGTH + 1);
}

/** What the run model says about an invocation whose span never ended. */
export interface ReportedInvocation {
  readonly outcome: SpanOutcome;
  readonly attributes: OtelAttributes;
}

/** The verdict on an invocation as a span's status and attributes. */
export function reportedInvocation(invocation: InvocationSummary, redactor: Redactor): ReportedInvocation {
  const { verdict, totalErrors, totalWarnings, command, rawCommand } = invocation;
  const reason = invocation.statusMessage === null ? undefined : redactor.text(invocation.statusMessage);
  const attributes: OtelAttributes = {};
  if (verdict !== null) attributes['run_bridge.verdict'] = verdict;
  if (command !== null) attributes['eval_args.command'] = command;
  if (rawCommand !== null) attributes.raw_command = redactor.command(rawCommand);
  if (totalErrors !== null) attributes['metrics.total_errors'] = totalErrors;
  if (totalWarnings !== null) attributes['metrics.total_warnings'] = totalWarnings;
  const isFailure = verdict === 'error' || verdict === 'canceled' || verdict === 'lost';
  if (isFailure) attributes['error.type'] = verdict;
  const code = verdict === 'success' ? SpanStatusCode.OK : SpanStatusCode.UNSET;
  const status = isFailure ? { code: SpanStatusCode.ERROR, message: describe(verdict, reason) } : { code };
  return { outcome: { status, event: undefined }, attributes };
}

function describe(verdict: string, reason: string | undefined): string {
  return reason === undefined || reason === '' || reason === verdict ? verdict : `${verdict}: ${reason}`;
}
