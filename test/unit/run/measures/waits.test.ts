import { describe, expect, it } from 'vitest';
import { parseRecordLine } from '../../../../src/record/record-line.js';
import { textReport } from '../../../../src/report/text.js';
import { traceIdOf } from '../../../fake/memory-record-log.js';
import { sampleLines } from '../../../fake/sample-run.js';
import { logged } from '../logged-samples.js';
import { measuresOf, nodeOf } from './sample-measures.js';

const NODE = 'model.shop.revenue';
/** Its span in the phase RUN, which lasts 22.8 ms, for much of which nothing else is at work. */
const RUN_SPAN = 'b9402efef20e99dc';
const START = 1795221808379222776n;
const MS = 1_000_000n;

const EVENTS = [
  ['process.ThreadPoolWait', 'Thread pool wait'],
  ['query.ConnectionLimitWait', 'Connection limit wait'],
] as const;

interface Wait {
  readonly event: string;
  readonly name: string;
  readonly parent: string | null;
  readonly fromMs: number;
  readonly toMs: number;
  readonly attributes?: object;
}

function waitLine({ event, name, parent, fromMs, toMs, attributes = {} }: Wait, index: number): string {
  return JSON.stringify({
    record_type: 'SpanEnd',
    trace_id: '01a1fb8ee3777201a097da5fa2658808',
    span_id: `a${String(index).padStart(15, '0')}`,
    span_name: name,
    parent_span_id: parent,
    links: null,
    start_time_unix_nano: String(START + BigInt(fromMs) * MS),
    end_time_unix_nano: String(START + BigInt(toMs) * MS),
    severity_number: 5,
    severity_text: 'DEBUG',
    status: null,
    event_type: `v1.public.events.fusion.${event}`,
    attributes,
  });
}

/** What is measured of `build-clean` with these waits in it. */
async function measured(waits: readonly Wait[], idleTimeMs?: number) {
  const said = idleTimeMs === undefined ? '' : `"idle_time_ms":"${idleTimeMs}",`;
  const lines = sampleLines('build-clean').map((line) =>
    line.includes('SpanEnd') && line.includes(`"unique_id":"${NODE}"`)
      ? line.replace('"attributes":{"database"', `"attributes":{${said}"database"`)
      : line,
  );
  // Over OTLP spans come after what is in them.
  const [command] = await measuresOf(logged([...waits.map(waitLine), ...lines].map(parseRecordLine)));
  if (command === undefined) throw new Error('no command');
  return command;
}

describe.each(EVENTS)('time in %s', (event, name) => {
  const inSpan = (fromMs: number, toMs: number) => ({ event, name, parent: RUN_SPAN, fromMs, toMs });

  it('is time for which its node waited, in the phase, the node and the command', async () => {
    const command = await measured([inSpan(0, 5), inSpan(8, 12)]);
    const node = nodeOf(command, NODE);
    expect(node.idleTimeMs).toBe(9);
    expect(node.phases.map(({ phase, idleTimeMs }) => [phase, idleTimeMs])).toContainEqual(['RUN', 9]);
    expect(command.totals.idleTimeMs).toBe(9);
    expect(command.phases.find(({ phase }) => phase === 'RUN')?.idleTimeMs).toBe(9);
    const report = { command, traceId: traceIdOf(1), commandCount: 1, comparison: null };
    const setting = { columns: null, hasColor: false, projectPath: '', version: '' };
    expect(textReport([report], setting)).toContain('idle_time_ms 9 ms');
  });

  it('is not counted twice where the engine has counted it into idle_time_ms, which has short waits as well', async () => {
    const command = await measured([inSpan(0, 5)], 7);
    expect(nodeOf(command, NODE).idleTimeMs).toBe(7);
    expect(command.totals.idleTimeMs).toBe(7);
  });

  it('counts once where waits overlap, and not beyond the phase', async () => {
    const { nodes } = await measured([inSpan(-4, 5), inSpan(3, 6), inSpan(4, 5), inSpan(20, 900)]);
    expect(nodes.find(({ uniqueId }) => uniqueId === NODE)?.idleTimeMs).toBe(8);
  });

  it('is no work: nothing of the length falls to a node while it waits', async () => {
    const before = nodeOf(await measured([]), NODE);
    const command = await measured([inSpan(0, 5)]);
    const node = nodeOf(command, NODE);
    expect(node.share.workNano).toBeLessThan(before.share.workNano);
    expect(node.share.queryNano).toBe(before.share.queryNano);
    const { warehouseNano: _inside, ...split } = command.split;
    for (const parts of [split, command.timeParts]) {
      expect(Object.values(parts).reduce((sum, nano) => sum + nano, 0n)).toBe(command.totals.lengthNano);
    }
    expect(split.waitsNano).toBeGreaterThan(0n);
    expect(command.timeParts.threadsNano).toBe(split.waitsNano);
  });

  it('is a wait on the critical path, whose waits and times still add up', async () => {
    const { criticalPath, totals } = await measured([inSpan(0, 5)]);
    const link = criticalPath.links.find(({ step }) => step.uniqueId === NODE && step.phase === 'RUN');
    expect(link?.waitNano).toBeGreaterThanOrEqual(5n * MS);
    const sum = criticalPath.links.reduce(
      (so, { waitNano, timeNano }) => so + waitNano + timeNano,
      criticalPath.tailNano,
    );
    expect(sum).toBe(totals.lengthNano);
  });

  it('belongs to the node that it names, whatever span it is in', async () => {
    const named = { event, name, parent: null, fromMs: 0, toMs: 5, attributes: { unique_id: NODE } };
    expect(nodeOf(await measured([named]), NODE).idleTimeMs).toBe(5);
  });
});

it('a wait in no node’s span is nobody’s', async () => {
  const { totals } = await measured([
    { event: 'process.ThreadPoolWait', name: 'Thread pool wait', parent: null, fromMs: 0, toMs: 5 },
  ]);
  expect(totals.idleTimeMs).toBe(0);
});
