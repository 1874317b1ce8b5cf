import { ownText } from '../../record/attributes.js';
import type { LogRecord, UnixNano } from '../../record/telemetry-record.js';
import { eventName, withoutFrames } from '../node-outcome.js';
import type { CommandMeasures } from './run-totals.js';
import { labelOf } from './troubles.js';

/** The log records of a command, by their time. The n-th record is the n-th of each list; all are as long. */
export interface CommandLog {
  /** When the command began. */
  readonly startTimeUnixNano: UnixNano;
  /** Milliseconds since the command's start; negative where one was written before it. */
  readonly timesMs: Float64Array;
  /** OpenTelemetry's numbers, 1 to 24; 0 where the record has none. */
  readonly severities: Uint8Array;
  /** Indexes in `nodes`; -1 where a record names no node. */
  readonly nodeAt: Int32Array;
  /** What it says, at most 4,000 characters. */
  readonly texts: readonly string[];
  /** Indexes of texts that are rows or values of the project, as `dbt show` prints them. */
  readonly dataAt: readonly number[];
  readonly nodes: readonly LoggedNode[];
  /** Records for which there was no room. */
  readonly omittedCount: number;
}

/** A node that log records name. */
export interface LoggedNode {
  readonly uniqueId: string;
  /** `model orders`. */
  readonly label: string;
}

/** The longest text of a record, in characters. */
const MAX_TEXT_CHARS = 4_000;
const SEVERITY_INFO = 9;

/**
 * What the log records of a trace may take together: half of it is for those at INFO and above, so that details do not take the
 * place of errors. Further records are counted.
 */
export class LogRoom {
  private readonly details = { records: 50_000, chars: 4_000_000 };
  private readonly others = { records: 50_000, chars: 4_000_000 };

  /** Whether a record of a severity and length has room, which is then taken. */
  take(severity: number, chars: number): boolean {
    const left = severity < SEVERITY_INFO ? this.details : this.others;
    if (left.records < 1 || left.chars < chars) return false;
    left.records -= 1;
    left.chars -= chars;
    return true;
  }
}

interface LogEntry {
  readonly time: UnixNano;
  readonly severity: number;
  readonly uniqueId: string | null;
  readonly text: string;
  readonly isData: boolean;
}

/** Collects one command's log records, in any order. */
export class LogCollector {
  private readonly entries: LogEntry[] = [];
  /** Each once. */
  private readonly ids = new Map<string, string>();
  private omittedCount = 0;

  constructor(private readonly room: LogRoom) {}

  add(record: LogRecord): void {
    const { text, isData } = spokenText(record);
    const cutText = text.slice(0, MAX_TEXT_CHARS);
    if (!this.room.take(record.severityNumber, cutText.length)) {
      this.omittedCount += 1;
      return;
    }
    this.entries.push({
      time: record.timeUnixNano,
      severity: Math.min(24, Math.max(0, record.severityNumber)),
      uniqueId: this.idOf(record),
      text: ownText(cutText),
      isData,
    });
  }

  private idOf({ attributes }: LogRecord): string | null {
    const id = attributes.text('unique_id')?.slice(0, MAX_TEXT_CHARS);
    if (id === undefined || id === '') return null;
    const known = this.ids.get(id) ?? ownText(id);
    this.ids.set(known, known);
    return known;
  }

  /** @param command that wrote them */
  of({ invocation, nodes }: CommandMeasures): CommandLog {
    const { startTimeUnixNano } = invocation;
    const entries = [...this.entries].sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
    const indexes = new Map([...this.ids.keys()].map((id, index) => [id, index]));
    const named = new Map(nodes.filter(({ uniqueId }) => indexes.has(uniqueId)).map((node) => [node.uniqueId, node]));
    const unnamed = { nodeType: null, name: null };
    return {
      startTimeUnixNano,
      timesMs: Float64Array.from(entries, ({ time }) => Number(time - startTimeUnixNano) / 1e6),
      severities: Uint8Array.from(entries, ({ severity }) => severity),
      nodeAt: Int32Array.from(entries, ({ uniqueId }) => (uniqueId === null ? -1 : (indexes.get(uniqueId) ?? -1))),
      texts: entries.map(({ text }) => text),
      dataAt: entries.flatMap(({ isData }, at) => (isData ? [at] : [])),
      nodes: [...indexes.keys()].map((uniqueId) => ({
        uniqueId,
        label: labelOf(named.get(uniqueId) ?? { uniqueId, ...unnamed }),
      })),
      omittedCount: this.omittedCount,
    };
  }
}

/** What a record says to people; of one without a body, what happened. */
function spokenText(record: LogRecord): Pick<LogEntry, 'text' | 'isData'> {
  const { body, attributes, eventType } = record;
  if (body.trim() !== '') return { text: withoutFrames(body).trimEnd(), isData: false };
  const content = attributes.text('content') ?? '';
  if (content !== '') return { text: content.trimEnd(), isData: true };
  const event = eventName(eventType);
  const details = (DETAILS[event] ?? []).flatMap((name) => attributes.text(name) ?? []).filter((text) => text !== '');
  const isProgress = event === 'ProgressMessage' && details.length > 0;
  return { text: [...(isProgress ? [] : [wordsOf(event)]), ...details].join(' '), isData: false };
}

/** Attributes that say what an event without a body was about. */
const DETAILS: Readonly<Partial<Record<string, readonly string[]>>> = {
  AdapterConnectionOpen: ['adapter_backend'],
  CompiledCode: ['node_name', 'relative_path'],
  ProgressMessage: ['action', 'target', 'description'],
  StateModifiedDiff: ['node_type_or_category', 'check'],
};

/** `AdapterConnectionOpen` as `Adapter connection open`. */
function wordsOf(event: string): string {
  return event.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
