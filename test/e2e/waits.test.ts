import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sampleLines } from '../fake/sample-run.js';
import { runBridge } from './run-bridge.js';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-waits-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const run = (...args: readonly string[]) => runBridge([...args, '--data-dir', 'data'], { cwd: dir });
/** The span of `model.shop.revenue` in the phase RUN of `build-clean`, which lasts 22.8 ms. */
const SPAN = { parent_span_id: 'b9402efef20e99dc', start: 1795221808379222776n };

function wait(index: number, eventType: string, fromMs: number, toMs: number, attributes = {}): string {
  const at = (ms: number) => String(SPAN.start + BigInt(ms) * 1_000_000n);
  return JSON.stringify({
    record_type: 'SpanEnd',
    trace_id: '01a1fb8ee3777201a097da5fa2658808',
    span_id: `a${String(index).padStart(15, '0')}`,
    span_name: eventType.endsWith('ThreadPoolWait') ? 'Thread pool wait' : 'Connection limit wait',
    parent_span_id: SPAN.parent_span_id,
    links: null,
    start_time_unix_nano: at(fromMs),
    end_time_unix_nano: at(toMs),
    severity_number: 5,
    severity_text: 'DEBUG',
    status: null,
    event_type: `v1.public.events.fusion.${eventType}`,
    attributes,
  });
}

test.each(['process.ThreadPoolWait', 'query.ConnectionLimitWait'])(
  'time in %s is waiting in reports, in SQL and in the trace for viewers alike',
  async (eventType) => {
    const waits = [
      wait(1, eventType, 0, 4),
      wait(2, eventType, 2, 6),
      wait(3, eventType, 20, 900, { unique_id: 'model.shop.revenue' }),
    ];
    writeFileSync(join(dir, 'otel.jsonl'), `${[...waits, ...sampleLines('build-clean')].join('\n')}\n`);
    expect(await run('import', 'otel.jsonl')).toMatchObject({ exitCode: 0 });

    const json = JSON.parse((await run('report', '--json')).stdout);
    const [{ nodes, totals }] = json.commands;
    const node = nodes.find((one: { unique_id: string }) => one.unique_id === 'model.shop.revenue');
    expect({ node: node.idle_time_ms, command: totals.idle_time_ms }).toEqual({ node: 8, command: 8 });

    const sql = 'SELECT unique_id, idle_time_ms::INTEGER AS ms FROM nodes WHERE idle_time_ms > 0';
    expect(JSON.parse((await run('query', '--json', sql)).stdout)).toEqual([
      { unique_id: 'model.shop.revenue', ms: 8 },
    ]);

    const { traceEvents } = JSON.parse((await run('report', '--format', 'perfetto')).stdout);
    const slices = traceEvents.filter(({ cat }: { cat?: string }) => cat === 'wait');
    expect(slices.map(({ name, dur }: { name: string; dur: number }) => [name, Math.round(dur / 100) / 10])).toEqual([
      ['waiting', 4],
      ['waiting', 2],
      ['waiting', 2.8],
    ]);
  },
);
