import { ENGINE_QUEUES } from './engine-queues.js';
import { reachableUrl } from './reachable-url.js';

/** What `serve` says of itself. */
export interface StartFacts {
  readonly otlpUrl: string;
  /** Where OTLP is received over gRPC; `null` where it is not. */
  readonly grpcUrl: string | null;
  readonly webUrl: string;
  readonly dataFolder: string;
  /** The file with the token that this first start has made; `null` on later ones. Its secret stands in no log. */
  readonly firstTokenFile: string | null;
  /** Whether OTLP over HTTP needs a token. */
  readonly isTokenNeeded: boolean;
  readonly isParquetOn: boolean;
  /** Where the records are streamed, in words; `null` where they are not. */
  readonly jsonl: string | null;
  /** Each destination: its name and where it is. */
  readonly destinations: readonly (readonly [name: string, where: string])[];
}

/** Five to seven lines: where it listens, where its first token is, where it writes, where it exports and what to run. */
export function startLines(facts: StartFacts): readonly string[] {
  const formats = ['JSONL', ...(facts.isParquetOn ? ['Parquet'] : [])].join(' and ');
  const streamed = facts.jsonl === null ? '' : `, streamed to ${facts.jsonl}`;
  const exported = facts.destinations.map(([name, where]) => `${name} (${where})`).join(', ');
  const token = facts.isTokenNeeded ? 'OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer $TOKEN" ' : '';
  const queues = Object.entries(ENGINE_QUEUES)
    .map((entry) => entry.join('='))
    .join(' ');
  return [
    `receives  OTLP over HTTP at ${facts.otlpUrl}`,
    ...(facts.grpcUrl === null ? [] : [`          OTLP over gRPC at ${facts.grpcUrl}`]),
    `pages     ${reachableUrl(facts.webUrl)} (sign in with a token; health is at ${facts.webUrl}/readyz)`,
    ...(facts.firstTokenFile === null
      ? []
      : [`token     one for everything is in ${facts.firstTokenFile}; others: run-bridge token create --help`]),
    `writes    ${facts.dataFolder}/runs (${formats}${streamed})`,
    `exports   ${exported || 'nothing; set OTEL_EXPORTER_OTLP_ENDPOINT, or destinations in run-bridge.yaml, to change that'}`,
    `now run   OTEL_EXPORTER_OTLP_ENDPOINT=${reachableUrl(facts.otlpUrl)} ${token}${queues} dbt build --export-to-otlp`,
  ];
}
