import type { Attributes as OtelAttributes } from '@opentelemetry/api';
import type { ReadableLogRecord } from '@opentelemetry/sdk-logs';
import type { TimedEvent } from '@opentelemetry/sdk-trace-base';
import type { Resource } from '../../record/resource.js';
import type { LogRecord } from '../../record/telemetry-record.js';
import type { Redactor } from '../redaction/redactor.js';
import { shortEventType } from './event-types.js';
import { flattenAttributes } from './flatten-attributes.js';
import { hrTimeOf } from './hr-time.js';
import { spanContextOf } from './mapped-span.js';
import type { MappingSwitches } from './mapping-switches.js';
import { writeStatement } from './query-attributes.js';
import type { ResourceMap } from './resource-map.js';

/** A log record in both of its forms; they share what was computed. */
export interface MappedLog {
  readonly log: ReadableLogRecord;
  readonly event: TimedEvent;
}

/** Makes OTel log records and span events of log records. */
export class LogMapper {
  constructor(
    private readonly switches: MappingSwitches,
    private readonly redactor: Redactor,
    private readonly resources: ResourceMap,
  ) {}

  map(record: LogRecord, resource: Resource): MappedLog {
    const mapped = this.resources.map(resource);
    const attributes: OtelAttributes = { event_type: record.eventType };
    flattenAttributes(
      record.attributes.value,
      record.eventType,
      attributes,
      this.redactor,
      this.switches['lifted-attributes'],
    );
    writeStatement(record.attributes, attributes, this.redactor, undefined, false);
    const body = this.redactor.text(record.body);
    const time = hrTimeOf(record.timeUnixNano);
    return {
      log: {
        hrTime: time,
        hrTimeObserved: time,
        ...(record.spanId === null ? {} : { spanContext: spanContextOf(record.traceId, record.spanId) }),
        severityNumber: record.severityNumber,
        severityText: record.severityText,
        body,
        eventName: record.eventType,
        resource: mapped.resource,
        instrumentationScope: mapped.scope,
        attributes,
        droppedAttributesCount: 0,
      },
      event: {
        name: shortEventType(record.eventType),
        time,
        attributes: {
          ...(body === '' ? {} : { body }),
          severity_text: record.severityText,
          severity_number: record.severityNumber,
          ...attributes,
        },
        droppedAttributesCount: 0,
      },
    };
  }
}
