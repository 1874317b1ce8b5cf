import { createHash } from 'node:crypto';

const TRACE_ID = '01a1fb8ea78d7281ae8c1be536b674cd';
const START_UNIX_MS = 1_795_230_282_000;
/** Nodes of the run; each has several spans. */
const NODES = 4096;

/** A record log of `Node evaluated` spans as the load generator sends them: start and end, sixteen attributes, a kilobyte each. */
export function nodeLines(spanCount: number): Buffer {
  const lines: string[] = [];
  for (let span = 0; span < spanCount; span++) lines.push(...linesOf(span));
  return Buffer.from(lines.join(''));
}

function linesOf(span: number): readonly string[] {
  const node = span % NODES;
  const area = String(node % 100).padStart(2, '0');
  const spanId = (span + 1).toString(16).padStart(16, 'a');
  const parent =
    span === 0
      ? 'null'
      : `"${Math.ceil(span / 4)
          .toString(16)
          .padStart(16, 'a')}"`;
  const name = `"span_name":"Node evaluated (model.jaffle.m${node})","parent_span_id":${parent},"links":null`;
  const head = `"trace_id":"${TRACE_ID}","span_id":"${spanId}",${name},"start_time_unix_nano":"${START_UNIX_MS + span}000000"`;
  const severity = '"severity_number":9,"severity_text":"INFO"';
  const type = '"event_type":"v1.public.events.fusion.node.NodeEvaluated"';
  const outcome = ['SUCCESS', 'SUCCESS', 'SUCCESS', 'ERROR', 'SKIPPED'][node % 5] ?? 'SUCCESS';
  const attributes = (atEnd: string) =>
    `{"_debug_info":"dbt-tasks/src/run/runnable.rs:${100 + (node % 900)} thread=${node % 8}","database":"analytics_prod","defined_at_line":${node % 300},"duration_ms":"${node % 5000}","identifier":"m${node}","invocation_id":"6f1c9a52-7b0e-4d7e-9b52-3f0d5a1c8e77","materialization":"NODE_MATERIALIZATION_TABLE","name":"m${node}","node_checksum":"${checksum(node)}",${atEnd}"phase":"EXECUTION_PHASE_RUN","query_id":"${checksum(span).slice(0, 36)}","relative_path":"models/marts/core/area_${area}/m${node}.sql","schema":"dbt_jaffle_${area}","unique_id":"model.jaffle.m${node}"}`;
  const status =
    outcome === 'ERROR' ? `{"message":"Database Error in model m${node}","code":2}` : '{"message":null,"code":1}';
  const end = `"end_time_unix_nano":"${START_UNIX_MS + span + 1500}000000",${severity},"status":${status}`;
  return [
    `{"record_type":"SpanStart",${head},${severity},${type},"attributes":${attributes('')}}\n`,
    `{"record_type":"SpanEnd",${head},${end},${type},"attributes":${attributes(`"node_outcome":"NODE_OUTCOME_${outcome}",`)}}\n`,
  ];
}

function checksum(number: number): string {
  return createHash('sha256').update(String(number)).digest('hex');
}
