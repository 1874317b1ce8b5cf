import { readFileSync } from 'node:fs';
import type { LoggedRecord } from '../../../../src/log/record-log.js';
import type { Resource } from '../../../../src/record/attributes.js';
import { parseRecordLine } from '../../../../src/record/record-line.js';

/** The resource that the samples' OTLP bodies carry. */
export const ENGINE: Resource = {
  attributes: { 'service.name': 'dbt-core', 'service.version': '2.0.0-alpha.4' },
  scope: { name: 'dbt-core', version: '' },
};

/** Records of a JSONL fixture as a record log would hold them. @param path below test/fixture. */
export function readLog(path: string): readonly LoggedRecord[] {
  return loggedLines(readFileSync(`test/fixture/${path}`, 'utf8').split('\n'));
}

/** Records of lines as a record log would hold them. */
export function loggedLines(lines: readonly string[]): readonly LoggedRecord[] {
  let offset = 0;
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const logged = { record: parseRecordLine(line), resource: ENGINE, offset, endOffset: offset + line.length + 1 };
      offset = logged.endOffset;
      return logged;
    });
}

/** The same log as OTLP would bring it: no starts, and no span that never ended. */
export function asOtlp(log: readonly LoggedRecord[]): readonly LoggedRecord[] {
  return log.filter((logged) => logged.record.recordType !== 'SpanStart');
}
