import { z } from 'zod';
import type { Signal } from '../record/record-batch.js';
import { choiceSchema, reject, switchSchema } from './schema-parts.js';
import { parsePath, type SettingContext } from './setting.js';

/** How requests in OTLP stand in Kafka's messages, as the Collector's Kafka exporter names it. */
export const KAFKA_ENCODINGS = ['otlp_proto', 'otlp_json'] as const;
/** Where a group begins that has committed nothing yet. */
export const KAFKA_OFFSETS = ['earliest', 'latest'] as const;
/** How the bridge says to Kafka who it is. */
export const SASL_MECHANISMS = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'] as const;

/** Where Kafka is, and who the bridge is there. */
export interface KafkaConnection {
  /** `HOST:PORT` each; those that the first answer names are asked as well. */
  readonly brokers: readonly string[];
  /** `null` for connections without TLS. */
  readonly tls: KafkaTlsSettings | null;
  /** `null` where Kafka asks nobody who it is. */
  readonly sasl: KafkaSaslSettings | null;
}

/** The topics that `journal: kafka:` writes and reads: one for each signal, with OTLP in protobuf. */
export interface KafkaJournalSettings extends KafkaConnection {
  readonly groupId: string;
  readonly topics: Readonly<Record<Signal, string>>;
}

/** Topics that a destination writes requests in OTLP to: one for each signal. */
export interface KafkaRequests {
  readonly topics: Readonly<Record<Signal, string>>;
  readonly encoding: (typeof KAFKA_ENCODINGS)[number];
}

/** The topic that a destination writes records to, as lines of the engine's JSONL. */
export interface KafkaLines {
  readonly topic: string;
  readonly encoding: 'jsonl';
}

/** The topics that a destination writes. */
export interface KafkaDestinationSettings extends KafkaConnection {
  readonly content: KafkaRequests | KafkaLines;
}

/** The topics that `sources: kafka:` reads. */
export interface KafkaSourceSettings extends KafkaConnection {
  readonly groupId: string;
  /** Topics with spans; may be empty. */
  readonly tracesTopics: readonly string[];
  /** Topics with log records; may be empty. */
  readonly logsTopics: readonly string[];
  /** Topics with lines of the engine's JSONL; may be empty. */
  readonly jsonlTopics: readonly string[];
  /** Of the topics with spans and log records. */
  readonly encoding: (typeof KAFKA_ENCODINGS)[number];
  readonly initialOffset: (typeof KAFKA_OFFSETS)[number];
}

/** Absolute paths of files in PEM, read whenever a connection is made anew; `null`: the usual authorities, and no certificate of one's own. */
export interface KafkaTlsSettings {
  readonly caFile: string | null;
  readonly certFile: string | null;
  readonly keyFile: string | null;
}

/** Who the bridge is for Kafka; passwords and client secrets are secrets. */
export type KafkaSaslSettings =
  | {
      readonly mechanism: Exclude<(typeof SASL_MECHANISMS)[number], 'OAUTHBEARER'>;
      readonly username: string;
      readonly password: string;
    }
  | {
      readonly mechanism: 'OAUTHBEARER';
      /** Where tokens are asked for with the client's id and secret (OAuth 2, client credentials). */
      readonly tokenUrl: string;
      readonly clientId: string;
      readonly clientSecret: string;
      readonly scope: string | null;
    };

const BROKER = /^(\[[0-9a-f:.]+\]|[a-z0-9_.-]+):\d{1,5}$/i;
const TOPIC = /^[a-zA-Z0-9._-]{1,249}$/;
/** Most brokers, and most topics, that one key may name. */
const MAX_WORDS = 100;
const NO_BROKERS = 'is not a list of brokers such as [kafka-1:9092, kafka-2:9092]';
const NO_TOPICS = 'is not a topic, a list of topics, or off';
const NO_TOPIC = 'is not the name of a topic';
const NAMED_TWICE = 'names a topic twice; each holds one kind of message';
/** As the Collector names them. */
const DEFAULT_TOPICS = { traces: 'otlp_spans', logs: 'otlp_logs' } as const satisfies Record<Signal, string>;
const DEFAULT_JSONL_TOPIC = 'otlp_jsonl';
const DEFAULT_GROUP = 'run-bridge';

const brokersSchema = listSchema(BROKER, NO_BROKERS).refine((brokers) => brokers.length > 0, NO_BROKERS);
const topicsSchema = z
  .preprocess((value) => (value === false || value === 'off' ? [] : value), listSchema(TOPIC, NO_TOPICS))
  .optional();

const topicSchema = z.string(NO_TOPIC).trim().regex(TOPIC, NO_TOPIC);
/** Keys that name one topic for each signal. */
const topicShape = { 'traces-topic': topicSchema.nullish(), 'logs-topic': topicSchema.nullish() };

const textSchema = z.union([z.string().min(1, 'is empty'), z.number()], 'is not a text').transform(String);

const NO_LIST = 'is not a list of settings such as "brokers: kafka-1:9092"';

/** Reads `sources: kafka:`. */
export function kafkaSourceSchema(settingContext: SettingContext) {
  return z
    .strictObject(
      {
        ...connectionShape(settingContext),
        'group-id': textSchema.nullish(),
        'traces-topic': topicsSchema,
        'logs-topic': topicsSchema,
        'jsonl-topic': topicsSchema,
        encoding: choiceSchema(KAFKA_ENCODINGS).nullish(),
        'initial-offset': choiceSchema(KAFKA_OFFSETS).nullish(),
      },
      NO_LIST,
    )
    .transform((value, context): KafkaSourceSettings => {
      const tracesTopics = value['traces-topic'] ?? [DEFAULT_TOPICS.traces];
      const logsTopics = value['logs-topic'] ?? [DEFAULT_TOPICS.logs];
      const jsonlTopics = value['jsonl-topic'] ?? [];
      const topics = [...tracesTopics, ...logsTopics, ...jsonlTopics];
      if (topics.length === 0) reject(context, 'reads no topic; set traces-topic, logs-topic or jsonl-topic');
      if (new Set(topics).size < topics.length) reject(context, NAMED_TWICE);
      return {
        ...connectionOf(value, context),
        groupId: value['group-id'] ?? DEFAULT_GROUP,
        tracesTopics,
        logsTopics,
        jsonlTopics,
        encoding: value.encoding ?? 'otlp_proto',
        initialOffset: value['initial-offset'] ?? 'earliest',
      };
    });
}

/** Reads `journal: kafka:`. */
export function kafkaJournalSchema(settingContext: SettingContext) {
  return z
    .strictObject({ ...connectionShape(settingContext), ...topicShape, 'group-id': textSchema.nullish() }, NO_LIST)
    .transform(
      (value, context): KafkaJournalSettings => ({
        ...connectionOf(value, context),
        groupId: value['group-id'] ?? DEFAULT_GROUP,
        topics: topicsOf(value, context),
      }),
    );
}

/** Reads `kafka:` of a destination. */
export function kafkaDestinationSchema(settingContext: SettingContext) {
  return z
    .strictObject(
      {
        ...connectionShape(settingContext),
        ...topicShape,
        'jsonl-topic': topicSchema.nullish(),
        encoding: choiceSchema([...KAFKA_ENCODINGS, 'jsonl']).nullish(),
      },
      NO_LIST,
    )
    .transform((value, context): KafkaDestinationSettings => {
      const { encoding, 'jsonl-topic': jsonlTopic } = value;
      const connection = connectionOf(value, context);
      if (encoding !== 'jsonl') {
        if (jsonlTopic != null) reject(context, 'has a jsonl-topic; add "encoding: jsonl" for lines alone');
        return {
          ...connection,
          content: { topics: topicsOf(value, context), encoding: encoding ?? 'otlp_proto' },
        };
      }
      if (value['traces-topic'] != null || value['logs-topic'] != null) {
        reject(context, 'has "encoding: jsonl", for which traces-topic and logs-topic say nothing; set jsonl-topic');
      }
      return { ...connection, content: { topic: jsonlTopic ?? DEFAULT_JSONL_TOPIC, encoding } };
    });
}

function topicsOf(
  value: z.output<z.ZodObject<typeof topicShape>>,
  context: z.core.$RefinementCtx,
): Readonly<Record<Signal, string>> {
  const topics = {
    traces: value['traces-topic'] ?? DEFAULT_TOPICS.traces,
    logs: value['logs-topic'] ?? DEFAULT_TOPICS.logs,
  };
  if (topics.traces === topics.logs) reject(context, NAMED_TWICE);
  return topics;
}

/** Keys that say where Kafka is, and who the bridge is there. */
export function connectionShape(settingContext: SettingContext) {
  const path = z.string('is not a path').transform((text) => parsePath(text, settingContext) ?? null);
  return {
    brokers: brokersSchema,
    tls: switchSchema.nullish(),
    'tls-ca-file': path.nullish(),
    'tls-cert-file': path.nullish(),
    'tls-key-file': path.nullish(),
    'sasl-mechanism': choiceSchema(SASL_MECHANISMS).nullish(),
    'sasl-username': textSchema.nullish(),
    'sasl-password': textSchema.nullish(),
    'sasl-token-url': z
      .string('is not a URL')
      .refine(isWebUrl, 'is not a URL such as https://login.example.com/oauth2/token')
      .nullish(),
    'sasl-client-id': textSchema.nullish(),
    'sasl-client-secret': textSchema.nullish(),
    'sasl-scope': textSchema.nullish(),
  };
}

type ConnectionValues = z.output<z.ZodObject<ReturnType<typeof connectionShape>>>;

/** The connection that the values of its keys say; problems go to the context. */
export function connectionOf(value: ConnectionValues, context: z.core.$RefinementCtx): KafkaConnection {
  const files = { caFile: value['tls-ca-file'], certFile: value['tls-cert-file'], keyFile: value['tls-key-file'] };
  const { caFile = null, certFile = null, keyFile = null } = files;
  if ((certFile === null) !== (keyFile === null)) {
    reject(context, 'has only one of tls-cert-file and tls-key-file; set both');
  }
  const hasFiles = caFile !== null || certFile !== null;
  if (value.tls === false && hasFiles) reject(context, 'has "tls: off" and files for TLS; remove one of them');
  return {
    brokers: value.brokers,
    tls: (value.tls ?? hasFiles) ? { caFile, certFile, keyFile } : null,
    sasl: saslOf(value, context),
  };
}

const PASSWORD_KEYS = ['sasl-username', 'sasl-password'] as const;
const TOKEN_KEYS = ['sasl-token-url', 'sasl-client-id', 'sasl-client-secret'] as const;

function saslOf(value: ConnectionValues, context: z.core.$RefinementCtx): KafkaSaslSettings | null {
  const { 'sasl-mechanism': mechanism, 'sasl-scope': scope = null } = value;
  const given = [...PASSWORD_KEYS, ...TOKEN_KEYS, 'sasl-scope' as const].filter((key) => value[key] != null);
  if (mechanism == null) {
    if (given.length > 0)
      reject(context, `has ${given.join(', ')} and no sasl-mechanism; set it, for example to PLAIN`);
    return null;
  }
  const isToken = mechanism === 'OAUTHBEARER';
  const missing = (isToken ? TOKEN_KEYS : PASSWORD_KEYS).filter((key) => value[key] == null);
  const others = (isToken ? PASSWORD_KEYS : ([...TOKEN_KEYS, 'sasl-scope'] as const)).filter(
    (key) => value[key] != null,
  );
  if (missing.length > 0) reject(context, `has "sasl-mechanism: ${mechanism}" and no ${missing.join(', ')}`);
  if (others.length > 0)
    reject(context, `has "sasl-mechanism: ${mechanism}", for which ${others.join(', ')} say nothing`);
  const text = (key: (typeof PASSWORD_KEYS | typeof TOKEN_KEYS)[number]) => value[key] ?? '';
  if (!isToken) return { mechanism, username: text('sasl-username'), password: text('sasl-password') };
  return {
    mechanism,
    tokenUrl: text('sasl-token-url'),
    clientId: text('sasl-client-id'),
    clientSecret: text('sasl-client-secret'),
    scope,
  };
}

/** A list of texts, or one text with commas. */
function listSchema(pattern: RegExp, problem: string) {
  return z.unknown().transform((value, context): readonly string[] => {
    const words: unknown = typeof value === 'string' ? value.split(',').map((word) => word.trim()) : value;
    const isList = Array.isArray(words) && words.length <= MAX_WORDS;
    if (!isList || !words.every((word) => typeof word === 'string' && pattern.test(word)))
      return reject(context, problem);
    return words as readonly string[];
  });
}

/** One with a user or a password in it would be shown. */
function isWebUrl(text: string): boolean {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  return url !== undefined && /^https?:$/.test(url.protocol) && url.username === '' && url.password === '';
}
