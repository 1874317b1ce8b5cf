import { resourceFromAttributes } from '@opentelemetry/resources';
import { BRIDGE_ATTRIBUTE } from '../../otlp/bridge-attributes.js';
import { tryParseRecordLine } from '../../record/record-line.js';
import type { LoggedItems, LoggedLines, RunMapper } from '../run-mapper.js';
import { ExportGroup } from '../wire/export-group.js';
import { type MappedItems, WindowWriter } from '../wire/item-window.js';
import { encodeAttributes, LOG, RECORD } from '../wire/wire-writer.js';

const GROUP = new ExportGroup(resourceFromAttributes({}), { name: 'run-bridge' });
const LINE_BREAK = 0x0a;

/** Maps nothing: each record is a log record that has its line as an attribute, and is sent as that line. */
export class JsonlRunMapper implements RunMapper {
  readonly heldCount = 0;
  private readonly windows = new WindowWriter();
  private firstOffset = 0;

  skipTo(_tracesOffset: number, logsOffset: number): void {
    this.firstOffset = logsOffset;
  }

  pushLines({ offset, lines }: LoggedLines): number {
    const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
    let damagedCount = 0;
    for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
      const lineBreak = bytes.indexOf(LINE_BREAK, start);
      end = lineBreak === -1 ? bytes.length : lineBreak;
      if (offset + start < this.firstOffset) continue;
      const line = bytes.toString('utf8', start, end);
      const record = tryParseRecordLine(line);
      if (record === undefined) damagedCount += 1;
      else this.write(line, record.traceId, offset + start);
    }
    return damagedCount;
  }

  pushItems(items: LoggedItems): number {
    return this.pushLines(items);
  }

  take(): MappedItems {
    return this.windows.take();
  }

  /** What never ended has no line. */
  finish(): MappedItems {
    return this.windows.take();
  }

  closingSpanIds(): readonly string[] {
    return [];
  }

  private write(line: string, traceId: string, anchorOffset: number): void {
    const out = this.windows.begin();
    out.tag(RECORD);
    const start = out.open();
    encodeAttributes(out, LOG.attributes, { [BRIDGE_ATTRIBUTE.record]: line });
    out.tag(LOG.traceId);
    out.hex(traceId);
    out.close(start);
    this.windows.add('logs', GROUP, anchorOffset);
  }
}
