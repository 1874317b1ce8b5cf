import { DEFAULT_MAPPING_OPTIONS, type MappingOptions } from '../../../../src/config/mapping-options.js';
import { OtelRunMapper } from '../../../../src/export/mapping/otel-run-mapper.js';
import type { SharedMapping } from '../../../../src/export/mapping/shared-mapping.js';
import type { LoggedLines } from '../../../../src/export/run-mapper.js';
import { parseRecordLine } from '../../../../src/record/record-line.js';
import type { RunSummary } from '../../../../src/run/verdict.js';
import { itemsOf, type MappedItem } from '../../../fake/mapped-items.js';
import { invocationSummary } from './mapped-run.js';
import { ENGINE } from './read-sample.js';

/** What a mapper gave, comparable: signal, anchor, and the item's bytes. */
export type MappedBytes = readonly string[];

/**
 * Maps a log whose lines have blanks where the engine writes none: attributes then are not copied from the line one by one,
 * but parsed and put together; and lines with links are written anew first. What comes out is to be the same.
 */
export function mapBlankLines(log: Buffer, options: Partial<MappingOptions> = {}): MappedBytes {
  const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, ...options });
  for (const { resource, offset, lines } of cut(log, [1])) {
    const blank = Buffer.from(lines).toString('latin1').replaceAll('"attributes":{', '"attributes":{ ');
    mapper.pushLines({ resource, offset, lines: Buffer.from(blank, 'latin1') });
  }
  return finish(mapper, log, itemsOf(mapper.take(false)));
}

/** Maps a log by the bytes of its lines. @param cuts how many lines each push takes, over and over. */
export function mapLines(
  log: Buffer,
  options: Partial<MappingOptions> = {},
  cuts: readonly number[] = [1_000_000],
  shared?: SharedMapping,
): MappedBytes {
  const mapper = new OtelRunMapper({ ...DEFAULT_MAPPING_OPTIONS, ...options }, shared);
  const items: MappedItem[] = [];
  for (const lines of cut(log, cuts)) {
    mapper.pushLines(lines);
    // They were only lent.
    lines.lines.fill(0x5a);
    for (const item of itemsOf(mapper.take(false))) items.push(item);
  }
  return finish(mapper, log, items);
}

/** The pushes of a log. @param cuts as for `mapLines` */
export function* cut(log: Buffer, cuts: readonly number[]): Generator<LoggedLines> {
  let from = 0;
  for (let piece = 0; from < log.length; piece++) {
    let to = from;
    for (let count = cuts[piece % cuts.length] ?? 1; count > 0 && to < log.length; count--)
      to = log.indexOf('\n', to) + 1 || log.length;
    yield { resource: ENGINE, offset: from, lines: Uint8Array.from(log.subarray(from, to)) };
    from = to;
  }
}

/** What a mapper gave, with what it gives as the run is over. */
export function finish(mapper: OtelRunMapper, log: Buffer, items: readonly MappedItem[]): MappedBytes {
  return [...items, ...itemsOf(mapper.finish(runOf(log)))].map(
    ({ signal, anchorOffset, bytes }) => `${signal} ${anchorOffset} ${bytes.toString('latin1')}`,
  );
}

/** A summary that makes a mapper close what is open, an invocation of which it knows nothing else included. */
function runOf(log: Buffer): RunSummary {
  const { traceId } = parseRecordLine(log.toString('utf8', 0, log.indexOf('\n')));
  const invocations = [invocationSummary({ verdict: 'lost', startTimeUnixNano: 1n, endTimeUnixNano: 2n })];
  return { traceId, firstSeenUnixMs: 0, lastSeenUnixMs: 0, state: 'finished', logBytes: log.length, invocations };
}
