import { z } from 'zod';
import { isSendableHeader, parseHttpUrl } from './destination-config.js';
import { parseDurationMs } from './duration.js';
import { type KafkaDestinationSettings, kafkaDestinationSchema } from './kafka-settings.js';
import { MAPPING_SWITCHES, type SetSwitches } from './mapping-options.js';
import { quoted } from './mask.js';
import { choiceSchema, reject, switchSchema } from './schema-parts.js';
import { parsePath, parseSwitch, type SettingContext } from './setting.js';
import { parseAge, parseTraceUrl, REDACTION_LEVELS, TRACE_URL } from './settings.js';

/** One place that runs are exported to, as `destinations:` in the configuration file describes it. */
export interface DestinationSettings {
  readonly name: string;
  /** Base URL; `/v1/traces` and `/v1/logs` are appended. `null` where each signal has its own, or a module exports. */
  readonly endpoint: string | null;
  /** URL for spans, used as it is. */
  readonly tracesEndpoint: string | null;
  /** URL for log records, used as it is. */
  readonly logsEndpoint: string | null;
  readonly signals: readonly ('traces' | 'logs')[];
  /** Whether it gets metrics of runs, at `/v1/metrics` of its endpoint. */
  readonly hasMetrics: boolean;
  /** Header names in lower case; values are secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** `sdk`: an OpenTelemetry SpanExporter sends, which takes spans alone. */
  readonly protocol: 'http/protobuf' | 'http/json' | 'sdk';
  readonly compression: 'none' | 'gzip';
  readonly timeoutMs: number;
  /** What was not taken for this long is given up; `off`: nothing is; `null`: as the setting `max-backlog-age` says. */
  readonly maxBacklogAgeMs: number | 'off' | null;
  /** Where a trace can be looked at there, with `{trace_id}` for its id; `null`: as the setting `trace-url` says. */
  readonly traceUrl: string | null;
  /** `null`: as the setting `redaction` says. */
  readonly redaction: (typeof REDACTION_LEVELS)[number] | null;
  /** Mapping switches that differ from the setting `mapping`. */
  readonly mapping: SetSwitches;
  /** Resource attributes that what is sent there has, whatever the engine and the environment say. */
  readonly resource: Readonly<Record<string, string | number | boolean>>;
  /**
   * With `sdk`: absolute path of a module whose default export makes a SpanExporter or SpanProcessor; `null` for
   * OpenTelemetry's OTLP exporter, which comes with the program.
   */
  readonly exporterModule: string | null;
  /** Topics of Kafka that are written to in place of an endpoint; `null`: none. */
  readonly kafka: KafkaDestinationSettings | null;
}

const eventsSchema = z
  .union([z.string(), z.boolean(), z.number()], 'is not on, off or logs')
  .transform((value, context) => {
    const text = String(value);
    if (text.trim().toLowerCase() === 'logs') return 'logs';
    return parseSwitch(text) ?? reject(context, `${quoted(value)} is not on, off or logs`);
  });

/** Reads `mapping:`: those switches that are set. */
export const mappingSchema = z
  .strictObject(
    {
      ...Object.fromEntries(Object.keys(MAPPING_SWITCHES).map((name) => [name, switchSchema.optional()])),
      events: eventsSchema.optional(),
    },
    'is not a list of switches',
  )
  .transform((value): SetSwitches => {
    const set = Object.entries(value).flatMap(([name, isOn]) => (isOn === undefined ? [] : [[name, isOn] as const]));
    return Object.fromEntries(set);
  });

/** Reads one entry of `destinations:`, all but its name. */
export function destinationSchema(settingContext: SettingContext) {
  return z
    .strictObject(
      {
        endpoint: url.nullish(),
        'traces-endpoint': url.nullish(),
        'logs-endpoint': url.nullish(),
        signals: z
          .union(
            [
              z.array(choiceSchema(['traces', 'logs'])).min(1),
              choiceSchema(['traces', 'logs']).transform((one) => [one]),
            ],
            'is not traces, logs or a list of them',
          )
          .nullish(),
        metrics: switchSchema.nullish(),
        headers: z
          .record(z.string(), z.union([z.string(), z.number(), z.boolean()]).transform(String))
          .superRefine((headers, context) => {
            for (const [name, value] of Object.entries(headers)) {
              if (isSendableHeader(name, value)) continue;
              const message = `${quoted(name)} cannot be sent as a header; check its name and value`;
              context.addIssue({ code: 'custom', message });
            }
          })
          .nullish(),
        protocol: choiceSchema(['http/protobuf', 'http/json', 'sdk']).nullish(),
        compression: choiceSchema(['none', 'gzip']).nullish(),
        timeout: z
          .union([z.string(), z.number()])
          .transform((value, context) => parseTimeout(String(value)) ?? reject(context, timeoutProblem(value)))
          .nullish(),
        'max-backlog-age': z
          .union([z.string(), z.number(), z.literal(false)])
          .transform(
            (value, context) => parseAge(value === false ? 'off' : String(value)) ?? reject(context, ageProblem(value)),
          )
          .nullish(),
        'trace-url': z
          .string()
          .transform((text, context) => parseTraceUrl(text) ?? reject(context, `${quoted(text)} is not ${TRACE_URL}`))
          .nullish(),
        redaction: choiceSchema(REDACTION_LEVELS).nullish(),
        mapping: mappingSchema.nullish(),
        resource: z.record(z.string().min(1), z.union([z.string(), z.number(), z.boolean()])).nullish(),
        exporter: z.string().nullish(),
        kafka: kafkaDestinationSchema(settingContext).nullish(),
      },
      'is not a list of settings such as "endpoint: http://127.0.0.1:4318"',
    )
    .superRefine((value, context) => {
      const endpoints = ENDPOINT_KEYS.map((key) => value[key]).filter((one) => one != null);
      if (value.exporter != null && endpoints.length > 0) {
        context.addIssue({ code: 'custom', message: 'has both an exporter and an endpoint; remove one of them' });
      }
      const endpoint = value.protocol === 'sdk' ? (value.endpoint ?? value['traces-endpoint']) : endpoints[0];
      const httpKeys = (['exporter', ...ENDPOINT_KEYS, 'headers', 'protocol'] as const).filter(
        (key) => value[key] != null,
      );
      if (value.kafka != null && httpKeys.length > 0) {
        context.addIssue({ code: 'custom', message: `has both kafka and ${httpKeys.join(', ')}; remove one of them` });
      }
      if (value.kafka?.content.encoding === 'jsonl') {
        // Redaction works on what is mapped.
        if (value.redaction !== 'off') {
          const message = 'has "encoding: jsonl", which writes records as they are; say so with "redaction: off"';
          context.addIssue({ code: 'custom', message });
        }
        const idle = (['signals', 'mapping', 'resource'] as const).filter((key) => value[key] != null);
        if (idle.length > 0) {
          const message = `has "encoding: jsonl", for which ${idle.join(', ')} say nothing; remove them`;
          context.addIssue({ code: 'custom', message });
        }
      }
      if (value.exporter == null && value.kafka == null && endpoint == null) {
        context.addIssue({
          code: 'custom',
          message: 'needs an endpoint, for example "endpoint: http://127.0.0.1:4318"',
        });
      }
      if (value.metrics === true && value.endpoint == null) {
        const message = 'has "metrics: on", which needs an "endpoint"; metrics go to its /v1/metrics';
        context.addIssue({ code: 'custom', message });
      }
      const takesNoLogs =
        value.protocol === 'sdk' || value.exporter != null || value.signals?.includes('logs') === false;
      if (value.mapping?.events === 'logs' && takesNoLogs) {
        const message = 'has "events: logs" and gets no log records; it would get no events at all';
        context.addIssue({ code: 'custom', message });
      }
      if (value.protocol === 'sdk' && value.signals?.includes('traces') === false) {
        context.addIssue({
          code: 'custom',
          message: 'has "protocol: sdk", which exports spans; give it "signals: traces"',
        });
      }
    })
    .transform((value): Omit<DestinationSettings, 'name'> => {
      const protocol = value.exporter == null ? (value.protocol ?? 'http/protobuf') : 'sdk';
      const all = ['traces', 'logs'] as const;
      // Records as lines go as log records.
      const signals =
        value.kafka?.content.encoding === 'jsonl'
          ? ['logs' as const]
          : protocol === 'sdk'
            ? ['traces' as const]
            : (value.signals ?? all);
      const headers = Object.entries(value.headers ?? {}).map(([name, text]) => [name.toLowerCase(), text] as const);
      return {
        endpoint: value.endpoint ?? null,
        tracesEndpoint: value['traces-endpoint'] ?? null,
        logsEndpoint: value['logs-endpoint'] ?? null,
        signals: [...new Set(signals)],
        hasMetrics: value.endpoint != null && (value.metrics ?? true),
        headers: Object.fromEntries(headers),
        protocol,
        compression: value.compression ?? 'none',
        timeoutMs: value.timeout ?? (value.exporter == null ? DEFAULT_TIMEOUT_MS : MODULE_TIMEOUT_MS),
        maxBacklogAgeMs: value['max-backlog-age'] ?? null,
        traceUrl: value['trace-url'] ?? null,
        redaction: value.redaction ?? null,
        mapping: value.mapping ?? {},
        resource: value.resource ?? {},
        exporterModule: value.exporter == null ? null : (parsePath(value.exporter, settingContext) ?? null),
        kafka: value.kafka ?? null,
      };
    });
}

const ENDPOINT_KEYS = ['endpoint', 'traces-endpoint', 'logs-endpoint'] as const;
/** OpenTelemetry's default for OTEL_EXPORTER_OTLP_TIMEOUT. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** How long a module may take for a batch; OpenTelemetry's default for OTEL_BSP_EXPORT_TIMEOUT. */
const MODULE_TIMEOUT_MS = 30_000;

const url = z.string().transform((text, context) => {
  if (parseHttpUrl(text) !== undefined) return text;
  return reject(context, `${quoted(text)} is not a URL such as http://127.0.0.1:4318`);
});

function parseTimeout(text: string): number | undefined {
  const timeoutMs = parseDurationMs(text);
  return timeoutMs === 0 ? undefined : timeoutMs;
}

function timeoutProblem(value: string | number): string {
  return `${quoted(value)} is not a time such as 500ms or 10s`;
}

function ageProblem(value: string | number | boolean): string {
  return `${quoted(value)} is not a time such as 12h or 7d, or off`;
}
