import type { TelemetryRecord } from '../../record/telemetry-record.js';
import type { Redactor } from '../redaction/redactor.js';

/** Attributes that hold names of the project's own things, and are exported as they are. */
export const NAME_ATTRIBUTES = [
  'unique_id',
  'name',
  'identifier',
  'schema',
  'database',
  'relative_path',
  'package_name',
  'profile',
  'target',
] as const;

/** Events of the public schema whose attributes may be trusted to be names, by the folder of their message. */
export const NAMING_EVENTS = /^v1\.public\.events\.fusion\.(?:node|asset|hook|query)\./;

/** A record as far as names are learned from it. */
export interface NamingRecord {
  readonly eventType: string;
  readonly isLog: boolean;
  /** An attribute that is a text. */
  text(name: string): string | undefined;
}

/**
 * Teaches the redactor the names in a record, its statement, and which database statements are for. A statement comes with
 * the end of its span, or a log record.
 */
export function learnNames(record: TelemetryRecord, redactor: Redactor): void {
  const isLog = record.recordType === 'LogRecord';
  const naming = { eventType: record.eventType, isLog, text: (name: string) => record.attributes.text(name) };
  learnNamesAlone(naming, redactor);
  if (record.recordType !== 'SpanStart') learnStatement(naming, redactor);
}

/** Teaches it the statement alone. */
export function learnStatement(record: NamingRecord, redactor: Redactor): void {
  const statement = record.text('sql');
  if (statement !== undefined) redactor.learnStatement(statement, record.text('adapter_type'));
}

/** Teaches it the names and the database. */
export function learnNamesAlone(record: NamingRecord, redactor: Redactor): void {
  if (!NAMING_EVENTS.test(record.eventType)) {
    const uniqueId = record.isLog ? record.text('unique_id') : undefined;
    if (uniqueId !== undefined) redactor.learn(uniqueId);
    return;
  }
  for (const attribute of NAME_ATTRIBUTES) {
    const name = record.text(attribute);
    if (name !== undefined) redactor.learn(name);
  }
  const adapterType = record.text('adapter_type');
  if (adapterType !== undefined) redactor.useAdapter(adapterType);
}
