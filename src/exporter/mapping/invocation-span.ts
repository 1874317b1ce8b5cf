import { type Attributes as OtelAttributes, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import {
  ATTR_CICD_PIPELINE_RESULT,
  CICD_PIPELINE_RESULT_VALUE_CANCELLATION,
  CICD_PIPELINE_RESULT_VALUE_ERROR,
  CICD_PIPELINE_RESULT_VALUE_FAILURE,
  CICD_PIPELINE_RESULT_VALUE_SUCCESS,
} from '@opentelemetry/semantic-conventions/incubating';
import { invocationIdOf, type SpanId, type TraceId } from '../../record/ids.js';
import type { InvocationSummary, Verdict } from '../../run/run-summary.js';
import type { Redactor } from '../redaction/redactor.js';
import type { SpanEvents } from './event-buffer.js';
import { EVENT_TYPE } from './event-types.js';
import { MappedSpan } from './mapped-span.js';
import type { MappedResource } from './resource-map.js';
import type { SpanOutcome } from './span-outcome.js';

/** What the run model says about an invocation whose span never ended. */
export interface ToldInvocation {
  readonly outcome: SpanOutcome;
  readonly attributes: OtelAttributes;
}

/** The verdict on an invocation as a span's status and attributes. */
export function toldInvocation(invocation: InvocationSummary, redactor: Redactor): ToldInvocation {
  const { verdict, totalErrors, totalWarnings, command, rawCommand } = invocation;
  const reason = invocation.statusMessage === null ? undefined : redactor.text(invocation.statusMessage);
  const attributes: OtelAttributes = {};
  if (verdict !== null) {
    attributes['run_bridge.verdict'] = verdict;
    attributes[ATTR_CICD_PIPELINE_RESULT] = PIPELINE_RESULTS[verdict];
  }
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

/** A span for an invocation whose own never came, so that the trace has its root and its verdict. */
export function syntheticInvocationSpan(
  traceId: TraceId,
  spanId: SpanId,
  invocation: InvocationSummary,
  source: { readonly redactor: Redactor; readonly resource: MappedResource; readonly events: SpanEvents },
): MappedSpan {
  const told = toldInvocation(invocation, source.redactor);
  return new MappedSpan({
    traceId,
    spanId,
    parentSpanId: invocation.outerParentSpanId,
    name: invocation.command === null ? NAME : `${NAME} (${invocation.command})`,
    kind: SpanKind.INTERNAL,
    startTimeUnixNano: invocation.startTimeUnixNano,
    endTimeUnixNano: invocation.endTimeUnixNano,
    status: told.outcome.status,
    attributes: {
      event_type: EVENT_TYPE.invocation,
      invocation_id: invocationIdOf(traceId),
      'run_bridge.synthetic': true,
      ...told.attributes,
    },
    links: [],
    events: source.events.events.map((waiting) => waiting.event),
    droppedEventsCount: source.events.droppedCount,
    resource: source.resource.resource,
    instrumentationScope: source.resource.scope,
  });
}

/** How an invocation ended, as OpenTelemetry says it of a pipeline's run. */
export const PIPELINE_RESULTS: Readonly<Record<Verdict, string>> = {
  success: CICD_PIPELINE_RESULT_VALUE_SUCCESS,
  error: CICD_PIPELINE_RESULT_VALUE_FAILURE,
  canceled: CICD_PIPELINE_RESULT_VALUE_CANCELLATION,
  lost: CICD_PIPELINE_RESULT_VALUE_ERROR,
};

/** As the engine names it, without the id. */
const NAME = 'dbt invocation';

function describe(verdict: string, reason: string | undefined): string {
  return reason === undefined || reason === '' || reason === verdict ? verdict : `${verdict}: ${reason}`;
}
