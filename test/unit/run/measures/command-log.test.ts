import { describe, expect, it } from 'vitest';
import { Attributes, type JsonObject } from '../../../../src/record/attributes.js';
import { type LogRecord, parseTraceId, type TraceId } from '../../../../src/record/telemetry-record.js';
import { LogCollector, LogRoom } from '../../../../src/run/measures/command-log.js';
import { sampleMeasures } from './sample-measures.js';

const command = await sampleMeasures('build-clean');

function record(change: Partial<LogRecord> & { readonly values?: JsonObject } = {}): LogRecord {
  const { values = {}, ...rest } = change;
  return {
    recordType: 'LogRecord',
    traceId: parseTraceId('a'.repeat(32)) as TraceId,
    ...{ spanId: null, spanName: null, eventId: null, severityNumber: 9, severityText: 'INFO', body: 'said' },
    eventType: 'v1.public.events.fusion.log.LogMessage',
    timeUnixNano: command.invocation.startTimeUnixNano + 1_500_000n,
    attributes: Attributes.of(values),
    ...rest,
  };
}

function collected(records: readonly LogRecord[]) {
  const collector = new LogCollector(new LogRoom());
  for (const one of records) collector.add(one);
  return collector.of(command);
}

describe('the log of a command', () => {
  it('says what happened where a record has no body, and marks what is data', () => {
    const event = (name: string, values: JsonObject) =>
      record({ body: '', eventType: `v1.public.events.fusion.log.${name}`, values });
    const { texts, dataAt } = collected([
      event('ProgressMessage', { action: 'Loading', target: 'profiles.yml' }),
      event('ProgressMessage', {}),
      event('CompiledCode', { node_name: 'orders', relative_path: 'target/orders.sql', sql: 'select 1' }),
      event('ShowDataOutput', { content: '| 1 | Ada |\n' }),
      event('SomethingNew', { secret: 'x' }),
    ]);
    expect(texts).toEqual([
      ...['Loading profiles.yml', 'Progress message', 'Compiled code orders target/orders.sql'],
      ...['| 1 | Ada |', 'Something new'],
    ]);
    expect(dataAt).toEqual([3]);
  });

  it('is in the order of time, with the nodes that records name', () => {
    const [node] = command.nodes;
    const later = record({ body: 'later', values: { unique_id: node?.uniqueId ?? '' } });
    const { texts, timesMs, nodeAt, nodes } = collected([
      later,
      record({
        body: 'before',
        timeUnixNano: command.invocation.startTimeUnixNano,
        values: { unique_id: 'model.x.y' },
      }),
      record({ body: 'no node' }),
    ]);
    expect(texts).toEqual(['before', 'later', 'no node']);
    expect([...timesMs]).toEqual([0, 1.5, 1.5]);
    expect([...nodeAt].map((at) => nodes[at]?.uniqueId)).toEqual(['model.x.y', node?.uniqueId, undefined]);
    expect(nodes.map(({ label }) => label)).toContain('model y');
  });

  it('is bounded, cuts texts, and has room for errors however many details there are', () => {
    const details = Array.from({ length: 1_200 }, () => record({ severityNumber: 5, body: 'x'.repeat(10_000) }));
    const { texts, omittedCount } = collected([...details, record({ severityNumber: 17, body: 'broken' })]);
    expect(texts).toHaveLength(1_001);
    expect(texts.at(0)).toHaveLength(4_000);
    expect(texts.at(-1)).toBe('broken');
    expect(omittedCount).toBe(200);
  });
});
