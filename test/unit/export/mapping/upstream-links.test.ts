import type { Link } from '@opentelemetry/api';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { describe, expect, it } from 'vitest';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import { Attributes } from '../../../../src/record/attributes.js';
import { formatRecordLine } from '../../../../src/record/record-line.js';
import type { SpanEnd } from '../../../../src/record/telemetry-record.js';
import type { RedactionLevel } from '../../../../src/redaction/known-names.js';
import type { Manifest, ManifestNode } from '../../../../src/storage/manifest.js';
import { type MappedRun, mapRun, nodeSpan, spanId } from './mapped-run.js';
import { asOtlp, loggedLines, readLog } from './read-sample.js';

const mixed = readLog('samples/build-mixed/otel.jsonl');
const LEVELS: readonly RedactionLevel[] = ['literals', 'statements', 'off'];
/** What the sample's project has, as its own manifest says. */
const DEPENDENCIES = {
  'seed.shop.raw_orders': [],
  'model.shop.stg_customers': ['seed.shop.raw_customers'],
  'model.shop.stg_orders': ['seed.shop.raw_orders'],
  'test.shop.orders_customer_warn.d69b09940d': ['model.shop.stg_orders', 'model.shop.stg_customers'],
  'model.shop.revenue': ['model.shop.stg_customers', 'model.shop.eph_paid'],
  'model.shop.eph_paid': ['model.shop.stg_orders'],
  'unit_test.shop.revenue.paid_revenue': ['model.shop.revenue'],
  'model.shop.after_broken': ['model.shop.broken'],
};

function manifestOf(
  edges: Readonly<Record<string, readonly string[]>>,
  checksums: Readonly<Record<string, string>> = {},
): Manifest {
  const nodeOf = (id: string, dependsOn: readonly string[]): ManifestNode => ({
    ...{ tags: [], owners: [], group: null, testedId: null, dependsOn },
    checksum: checksums[id] ?? null,
  });
  return new Map(Object.entries(edges).map(([id, dependsOn]) => [id, nodeOf(id, dependsOn)]));
}

function mapped(log: readonly LoggedRecord[], manifest: Manifest, redaction: RedactionLevel = 'literals'): MappedRun {
  return mapRun(log, { redaction }, undefined, (mapper) => mapper.setManifest(manifest));
}

const isUpstream = ({ attributes }: Link) => attributes?.['run_bridge.link.type'] === 'upstream';

function upstreamOf(run: MappedRun, uniqueId: string) {
  return nodeSpan(run, uniqueId)
    .links.filter(isUpstream)
    .map(({ attributes, context }) => {
      expect(context.traceId).toBe(nodeSpan(run, uniqueId).spanContext().traceId);
      expect(context.spanId).toBe(nodeSpan(run, String(attributes?.unique_id)).spanContext().spanId);
      return attributes?.unique_id;
    });
}

describe("a node's span", () => {
  it('links to those of the nodes that it is made of, at every level of redaction and however its run came', () => {
    for (const redaction of LEVELS) {
      for (const log of [mixed, asOtlp(mixed)]) {
        const run = mapped(log, manifestOf(DEPENDENCIES), redaction);
        expect(upstreamOf(run, 'model.shop.stg_customers')).toEqual(['seed.shop.raw_customers']);
        // From cells, and one whose outcome plain code has to write.
        expect(upstreamOf(run, 'model.shop.revenue')).toEqual(['model.shop.stg_customers', 'model.shop.eph_paid']);
        expect(upstreamOf(run, 'test.shop.orders_customer_warn.d69b09940d')).toEqual([
          'model.shop.stg_orders',
          'model.shop.stg_customers',
        ]);
        expect(upstreamOf(run, 'seed.shop.raw_orders')).toEqual([]);
        // It runs before the model that it is of.
        expect(upstreamOf(run, 'unit_test.shop.revenue.paid_revenue')).toEqual([]);
        // Beside the link to what it was skipped for.
        expect(upstreamOf(run, 'model.shop.after_broken')).toEqual(['model.shop.broken']);
        expect(nodeSpan(run, 'model.shop.after_broken').links).toHaveLength(2);
      }
    }
  });

  it('has the same attributes, events and other links as without', () => {
    const withoutLinks = ({ spans }: MappedRun) =>
      spans.map(({ name, attributes, events, links, status }) => ({
        ...{ name, attributes, events, status },
        links: links.filter((link) => !isUpstream(link)),
      }));
    const run = mapped(mixed, manifestOf(DEPENDENCIES));
    expect(withoutLinks(run)).toEqual(withoutLinks(mapRun(mixed)));
    const linked = run.spans.filter(({ links }) => links.some(isUpstream));
    expect(linked.every(({ name }) => name.startsWith('Node processed'))).toBe(true);
  });

  it('links past what did not run, and to nothing that is in a circle or has no span', () => {
    const run = mapped(
      mixed,
      manifestOf({
        'model.shop.stg_orders': ['model.shop.not_selected', 'source.shop.raw.orders'],
        'model.shop.not_selected': ['seed.shop.raw_orders', 'model.shop.circle', 'seed.shop.raw_customers'],
        'model.shop.circle': ['model.shop.not_selected'],
      }),
    );
    expect(upstreamOf(run, 'model.shop.stg_orders')).toEqual(['seed.shop.raw_orders', 'seed.shop.raw_customers']);
  });

  it('has none where its file is another one than that of the manifest, as after an edit since an earlier run', () => {
    const checksumOf = (id: string) => String(nodeSpan(mapRun(mixed), id).attributes.node_checksum);
    const checksums = {
      'model.shop.stg_orders': checksumOf('model.shop.stg_orders'),
      'model.shop.stg_customers': 'edited',
    };
    const run = mapped(mixed, manifestOf(DEPENDENCIES, checksums));
    expect(upstreamOf(run, 'model.shop.stg_orders')).toEqual(['seed.shop.raw_orders']);
    expect(upstreamOf(run, 'model.shop.stg_customers')).toEqual([]);
  });

  it('has 128 at most, and says how many more there would be', () => {
    const end = mixed.map(({ record }) => record).find(isProcessed);
    if (end === undefined) throw new Error('no node');
    const node = (number: number, uniqueId: string): SpanEnd => ({
      ...end,
      spanId: spanId(number.toString(16).padStart(16, '0')),
      attributes: Attributes.of({ ...end.attributes.value, unique_id: uniqueId }),
    });
    const ids = Array.from({ length: 130 }, (_, index) => `model.shop.up_${index}`);
    const log = (outcome: string) => {
      const last = node(1_000, 'model.shop.down');
      const attributes = Attributes.of({ ...last.attributes.value, node_outcome: outcome });
      const records = [...ids.map((id, index) => node(index + 1, id)), { ...last, attributes }];
      return loggedLines(records.map(formatted));
    };
    for (const outcome of ['NODE_OUTCOME_SUCCESS', 'NODE_OUTCOME_ERROR']) {
      const linksOf = (count: number): ReadableSpan =>
        nodeSpan(mapped(log(outcome), manifestOf({ 'model.shop.down': ids.slice(0, count) })), 'model.shop.down');
      expect([linksOf(128).links.length, linksOf(128).droppedLinksCount]).toEqual([128, 0]);
      expect([linksOf(130).links.length, linksOf(130).droppedLinksCount]).toEqual([128, 2]);
    }
  });
});

function isProcessed(record: LoggedRecord['record']): record is SpanEnd {
  return record.recordType === 'SpanEnd' && record.eventType.endsWith('NodeProcessed');
}

function formatted(record: SpanEnd): string {
  const { line: _line, ...content } = record;
  return formatRecordLine(content);
}
