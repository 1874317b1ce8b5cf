import { type Environment, nonEmpty } from '../../config/environment.js';
import { invocationIdOf } from '../../record/ids.js';
import { STEP_ATTRIBUTE } from '../../record/resource.js';
import { ENGINE_QUEUES } from '../engine-queues.js';
import { EXEC_VARIABLE } from './is-wrapped.js';
import { formatTraceparent, type TraceContext } from './trace-context.js';

/** What a command is wired to. */
export interface Wiring {
  /** Where this process receives OTLP, for example `http://127.0.0.1:40123`. */
  readonly otlpUrl: string;
  /** The private file for the engine's JSONL; `null` where the user's own is followed, or there is none. */
  readonly jsonlPath: string | null;
  readonly stepId: string;
  /** The span that the engine's roots are to be below; `null` where they are to be roots, or the user has said it. */
  readonly parent: TraceContext | null;
  /** Whether the parent is a span of this program's own, so that `TRACEPARENT` must name it. */
  readonly isParentOwn: boolean;
}

const LOOPBACK = ['127.0.0.1', 'localhost'];

/**
 * The environment of a wrapped command: the user's, with the engine's telemetry led to this process. What the user has set
 * stays, but for where traces and logs go: that becomes a destination of the bridge. Metrics go where they went.
 */
export function childEnvironment(user: Environment, wiring: Wiring): Environment {
  return {
    ...withDefaults(user, { DBT_EXPORT_TO_OTLP: 'true', ...ENGINE_QUEUES }),
    ...endpoints(user, wiring.otlpUrl),
    ...noProxy(user),
    ...(wiring.jsonlPath === null ? {} : { DBT_OTEL_FILE_NAME: wiring.jsonlPath }),
    OTEL_RESOURCE_ATTRIBUTES: resourceAttributes(user.OTEL_RESOURCE_ATTRIBUTES, wiring.stepId),
    ...traceVariables(wiring),
    [EXEC_VARIABLE]: wiring.otlpUrl,
  };
}

function withDefaults(user: Environment, defaults: Environment): Environment {
  const missing = Object.entries(defaults).filter(([name]) => nonEmpty(user[name]) === undefined);
  return { ...user, ...Object.fromEntries(missing) };
}

function endpoints(user: Environment, otlpUrl: string): Environment {
  const general = nonEmpty(user.OTEL_EXPORTER_OTLP_ENDPOINT);
  const metrics = general === undefined ? undefined : `${general.replace(/\/+$/, '')}/v1/metrics`;
  return {
    OTEL_EXPORTER_OTLP_ENDPOINT: otlpUrl,
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: undefined,
    OTEL_EXPORTER_OTLP_LOGS_ENDPOINT: undefined,
    OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: nonEmpty(user.OTEL_EXPORTER_OTLP_METRICS_ENDPOINT) ?? metrics,
  };
}

/** The engine heeds HTTP_PROXY even for 127.0.0.1. Programs read either spelling, so both have to say the same. */
function noProxy(user: Environment): Environment {
  const spellings = [nonEmpty(user.NO_PROXY), nonEmpty(user.no_proxy)];
  const extend = (text: string) => {
    const hosts = text.split(',').map((host) => host.trim());
    return [text, ...LOOPBACK.filter((host) => !hosts.includes(host) && !hosts.includes('*'))].join(',');
  };
  const [upper = spellings[1], lower = spellings[0]] = spellings;
  const none = LOOPBACK.join(',');
  return {
    NO_PROXY: upper === undefined ? none : extend(upper),
    no_proxy: lower === undefined ? none : extend(lower),
  };
}

function resourceAttributes(user: string | undefined, stepId: string): string {
  const pairs = (user ?? '').split(',').filter((pair) => pair.trim() !== '' && !isStepId(pair));
  return [...pairs, `${STEP_ATTRIBUTE}=${stepId}`].join(',');
}

/** Of a command that was wrapped inside this one's caller. */
function isStepId(pair: string): boolean {
  return pair.trim().startsWith(`${STEP_ATTRIBUTE}=`);
}

function traceVariables({ parent, isParentOwn }: Wiring): Environment {
  if (parent === null) return {};
  return {
    DBT_INVOCATION_ID: invocationIdOf(parent.traceId),
    DBT_PARENT_SPAN_ID: parent.parentSpanId,
    ...(isParentOwn ? { TRACEPARENT: formatTraceparent(parent) } : {}),
  };
}
