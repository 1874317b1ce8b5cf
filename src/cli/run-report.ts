import type { LogRecord, SpanEnd, TelemetryRecord } from '../record/telemetry-record.js';
import { nodeVerdictOf } from '../run/node-outcome.js';
import type { InvocationSummary, NodeVerdict } from '../run/run-summary.js';

/** Nodes that are listed of each kind; more are counted. */
const MAX_LISTED = 20;
const COUNT_ORDER: readonly NodeVerdict[] = [
  'success',
  'warned',
  'failed',
  'error',
  'canceled',
  'skipped',
  'unfinished',
];

/** Collects, record by record, what a reader of a run wants to know first: what failed, and why. */
export class RunReport {
  private readonly ends = new Map<string, SpanEnd>();
  /** First error message of each node. */
  private readonly messages = new Map<string, string>();

  add(record: TelemetryRecord): void {
    const uniqueId = record.attributes.text('unique_id');
    if (uniqueId === undefined) return;
    if (isNodeEnd(record)) this.ends.set(uniqueId, record);
    if (isError(record) && !this.messages.has(uniqueId)) this.messages.set(uniqueId, record.body);
  }

  /** The report's lines. */
  lines(invocation: InvocationSummary): readonly string[] {
    const seconds = Number((invocation.endTimeUnixNano - invocation.startTimeUnixNano) / 1_000_000n) / 1_000;
    const counts = COUNT_ORDER.filter((verdict) => invocation.nodeCounts[verdict] > 0);
    return [
      `${invocation.command ?? 'a command'}: ${invocation.verdict ?? 'running'} after ${seconds.toFixed(1)} s`,
      `nodes: ${counts.map((verdict) => `${invocation.nodeCounts[verdict]} ${verdict}`).join(', ')}`,
      ...this.section('failed with an error', 'error', (id) => this.messages.get(id) ?? 'no message came with it'),
      ...this.section('failed tests', 'failed', (_, end) => testDetail(end)),
      ...this.section('tests with a warning', 'warned', (_, end) => testDetail(end)),
    ];
  }

  private section(title: string, verdict: NodeVerdict, detail: (id: string, end: SpanEnd) => string): string[] {
    const found = [...this.ends].filter(([, end]) => nodeVerdictOf(end, 'none') === verdict);
    if (found.length === 0) return [];
    const lines = found.slice(0, MAX_LISTED).map(([id, end]) => `  ${id}: ${indent(detail(id, end))}`);
    const rest = found.length - lines.length;
    return ['', `${title}:`, ...lines, ...(rest > 0 ? [`  and ${rest} more`] : [])];
  }
}

function isNodeEnd(record: TelemetryRecord): record is SpanEnd {
  return record.recordType === 'SpanEnd' && record.eventType.endsWith('.NodeProcessed');
}

function isError(record: TelemetryRecord): record is LogRecord {
  return record.recordType === 'LogRecord' && record.severityText === 'ERROR';
}

function testDetail({ attributes }: SpanEnd): string {
  const detail = attributes.object('node_test_detail');
  const rows = detail?.failing_rows;
  const table = detail?.diff_table;
  if (typeof table === 'string') return `expected and actual rows differ\n${table}`;
  return typeof rows === 'number' ? `${rows} failing ${rows === 1 ? 'row' : 'rows'}` : 'no row count came with it';
}

/** Further lines of a text stand below its first. */
function indent(text: string): string {
  return text.trimEnd().replaceAll('\n', '\n      ');
}
