import { spanIdOf } from '../../record/span-id-table.js';
import { dependenciesOf } from '../../run/measures/upstream.js';
import { isUnitTestId, type Manifest } from '../../storage/manifest.js';
import { encodeLink, WireWriter } from '../wire/wire-writer.js';
import type { MappedRecord } from './mapped-record.js';
import type { NodeIndex } from './node-index.js';

/** Links of a span to the nodes that its node is made of; OpenTelemetry's default for all links of a span. */
const MAX_UPSTREAM_LINKS = 128;

/** Links a node's span to those of the nodes that it is made of, as a manifest says: the engine gives no such links. */
export class UpstreamLinks {
  private manifest: Manifest | undefined;
  private upstreamOf: (uniqueId: string) => readonly string[] = () => [];
  /** The links that were made last, as they stand in a span. */
  readonly out = new WireWriter(1024);
  /** How many more there would be. */
  droppedCount = 0;

  constructor(private readonly nodes: NodeIndex) {}

  /** Sets what nodes are made of, for all spans that are let go from now on. */
  setManifest(manifest: Manifest): void {
    this.manifest = manifest;
    this.upstreamOf = dependenciesOf(manifest, (id) => this.nodes.hasProcessedSpan(id));
  }

  /** Makes the links of a processed node into `out`. @returns whether there are any */
  make(record: MappedRecord, uniqueId: string | undefined, traceId: () => string): boolean {
    const known = uniqueId === undefined ? undefined : this.manifest?.get(uniqueId);
    if (uniqueId === undefined || known === undefined || isUnitTestId(uniqueId)) return false;
    // The manifest may be that of an earlier run: what has changed since is not known.
    const checksum = record.text('node_checksum');
    if (checksum !== undefined && known.checksum !== null && checksum !== known.checksum) return false;
    const { out } = this;
    out.length = 0;
    this.droppedCount = 0;
    let count = 0;
    for (const id of this.upstreamOf(uniqueId)) {
      const span = this.nodes.processedSpanOf(id, record);
      if (span === undefined) continue;
      if (count++ >= MAX_UPSTREAM_LINKS) this.droppedCount += 1;
      else
        encodeLink(out, traceId(), spanIdOf(span[0], span[1]), { 'run_bridge.link.type': 'upstream', unique_id: id });
    }
    return count > 0;
  }
}
