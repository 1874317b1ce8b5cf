import { isInt64Field } from '../mapping/int64-fields.js';
import { NAME_ATTRIBUTES, NAMING_EVENTS } from '../mapping/learn-names.js';
import { type AttributePolicy, attributePolicyOf } from '../redaction/attribute-policy.js';
import { planAndRole } from './line-cells.js';
import { Literal } from './literal.js';

/** Attributes whose value the mapping itself looks at; the others are only copied. */
export const ROLES = [
  'unique_id',
  'database',
  'schema',
  'phase',
  'last_phase',
  'adapter_type',
  'sql',
  'sql_hash',
  'query_outcome',
  'hook_outcome',
  'node_outcome',
  'node_error_type',
  'test_outcome',
  'node_test_detail',
  'node_freshness_outcome',
  'node_outcome_detail',
  'node_skip_upstream_detail',
  'rows_affected',
] as const;

/** The number of a role; -1 for every other attribute. */
export function roleIndexOf(name: string): number {
  return ROLE_INDEXES.get(name) ?? -1;
}

const ROLE_INDEXES: ReadonlyMap<string, number> = new Map(ROLES.map((name, index) => [name, index]));

/** Those that the run's memory asks for as soon as a line was read; the others are looked at when the span is sent. */
const READ_AT_ONCE = new Set<string>([
  'unique_id',
  'database',
  'schema',
  'phase',
  'query_outcome',
] satisfies (typeof ROLES)[number][]);

/** How one attribute of one event type is read and exported. */
export class AttributePlan {
  /** `"name":` */
  readonly quoted: Literal;
  readonly policy: AttributePolicy;
  readonly isInt64: boolean;
  readonly role: number;
  /** Its first cell in a line, but for the kind of its value. */
  readonly cell: number;
  /** Whether it teaches the run's names. */
  readonly isName: boolean;
  /** Whether it tells the database that statements are for. */
  readonly isAdapter: boolean;
  /** Whether a text of it is made as soon as the line was read, so that the line must not turn out to be damaged then. */
  readonly isReadAtOnce: boolean;
  /** `0a <length> name 12`: a KeyValue up to the length of its value. */
  readonly keyBytes: Buffer;
  /** The attribute that followed this one in the last start, and in the last end: it mostly does in the next. */
  readonly next: [AttributePlan | undefined, AttributePlan | undefined] = [undefined, undefined];
  /** Number of the line that it was seen in last: a second time in one line is not for the fast path. */
  lineNumber = 0;
  constructor(
    readonly index: number,
    readonly name: string,
    eventType: string,
  ) {
    this.quoted = new Literal(`"${name}":`);
    this.policy = attributePolicyOf(name, eventType);
    this.isInt64 = isInt64Field(name, '');
    this.role = roleIndexOf(name);
    this.cell = planAndRole(index, this.role);
    const isNaming = NAMING_EVENTS.test(eventType);
    this.isName = isNaming && NAME_ATTRIBUTES.some((one) => one === name);
    this.isAdapter = isNaming && name === 'adapter_type';
    this.isReadAtOnce = this.isName || this.isAdapter || READ_AT_ONCE.has(name);
    this.keyBytes = Buffer.concat([Buffer.from([0x0a, name.length]), Buffer.from(name, 'latin1'), Buffer.from([0x12])]);
  }
}
