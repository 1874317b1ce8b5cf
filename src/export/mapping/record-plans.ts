import { type AttributeLayout, Form, type Layout } from '../../otlp/wire/layouts.js';
import { itemReading } from '../../otlp/wire/read-items.js';
import { constant, type Range } from '../../record/arena.js';
import type { AttributePolicy } from '../../record/event-table.js';
import { attributePolicyOf } from '../../redaction/known-names.js';
import { NAME_ATTRIBUTES, NAMING_EVENTS } from '../../redaction/redactor.js';
import {
  EVENT_TYPE,
  isInt64Field,
  isSpecialName,
  isStableName,
  isStructuralName,
  shortEventType,
} from './exported-names.js';

/** What is made of an attribute's value. */
export const Use = {
  /** A text as it is, a number or a truth value as it is. */
  copied: 0,
  /** A text is shown as its policy says. */
  shown: 1,
  /** A text spells a 64-bit integer. */
  int64: 2,
  /** Numbers are left out, texts are `?`. */
  denied: 3,
  /** The statement, which has a way of its own. */
  sql: 4,
} as const;

/** How one attribute of one event type is exported. */
export interface AttributePlan {
  readonly name: string;
  readonly policy: AttributePolicy;
  /** One of `Use`, where texts are redacted and where they are not. */
  readonly redacted: number;
  readonly whole: number;
  /** Whether a text may be JSON, of which attributes of their own are made. */
  readonly mayBeNested: boolean;
  /** What its KeyValue begins with. */
  readonly key: Range;
  readonly isAdapter: boolean;
}

/** How records with one layout are exported. */
export class RecordPlan {
  readonly eventType: string;
  readonly attributes: readonly AttributePlan[];
  /** Indices of the attributes that teach the run's names, and the database: of a span only where its event does. */
  readonly names: readonly number[];
  readonly isNaming: boolean;
  /** Whether an attribute has a name that the mapping gives as well: plain code then decides which one counts. */
  readonly isSpecial: boolean;
  readonly typeName: Range;
  readonly shortName: Range;
  /** Whether a span's name is exported as it stands; whether it holds nothing but names, counts and ids. */
  readonly isNameKept: boolean;
  readonly isNameStructural: boolean;
  readonly isProcessed: boolean;
  readonly isNode: boolean;
  readonly isQuery: boolean;
  /** Whether plain code has to map its spans: their outcome has rules of its own. */
  readonly isOther: boolean;
  /** Indices of the attributes that the mapping asks for by name; -1 for those that there are none of. */
  readonly uniqueId: number;
  readonly sql: number;
  readonly sqlHash: number;
  readonly adapterType: number;
  readonly queryOutcome: number;
  readonly nodeOutcome: number;
  readonly rowsAffected: number;
  readonly skipDetail: number;
  /** Those that have the result of a check: test, unit test, freshness. */
  readonly checks: readonly number[];
  /** Index of each attribute. */
  private readonly indexByName: ReadonlyMap<string, number>;

  constructor({ event, attributes }: Layout) {
    const { eventType } = event;
    const isNaming = NAMING_EVENTS.test(eventType);
    this.eventType = eventType;
    this.isNaming = isNaming;
    this.attributes = attributes.map((attribute) => planOf(attribute, eventType));
    this.names = attributes.flatMap(({ name }, index) => (teachesName(name, isNaming) ? [index] : []));
    this.indexByName = new Map(attributes.map(({ name }, index) => [name, index]));
    this.uniqueId = this.indexOf('unique_id');
    this.sql = this.indexOf('sql');
    this.sqlHash = this.indexOf('sql_hash');
    this.adapterType = this.indexOf('adapter_type');
    this.queryOutcome = this.indexOf('query_outcome');
    this.nodeOutcome = this.indexOf('node_outcome');
    this.rowsAffected = this.indexOf('rows_affected');
    this.skipDetail = this.indexOf('node_skip_upstream_detail');
    this.checks = CHECKS.map((name) => this.indexOf(name)).filter((index) => index >= 0);
    this.isSpecial = attributes.some(({ name }) => isSpecialName(name) || name === 'node_outcome_detail');
    this.typeName = event.typeName;
    this.shortName = shortNameOf(event.typeName, eventType);
    this.isNameKept = isStableName(eventType);
    this.isNameStructural = isStructuralName(eventType);
    this.isProcessed = eventType === EVENT_TYPE.nodeProcessed;
    this.isNode = this.isProcessed || eventType === EVENT_TYPE.nodeEvaluated;
    this.isQuery = eventType === EVENT_TYPE.queryExecuted;
    this.isOther = OTHERS.has(eventType);
  }

  has(name: string): boolean {
    return this.indexByName.has(name);
  }

  /** Index of an attribute; -1 for none. */
  indexOf(name: string): number {
    return this.indexByName.get(name) ?? -1;
  }
}

const CHECKS = ['node_test_detail', 'node_freshness_outcome'] as const;

const OTHERS: ReadonlySet<string> = new Set([
  EVENT_TYPE.invocation,
  EVENT_TYPE.hookProcessed,
  EVENT_TYPE.microbatchEvaluated,
]);

const NO_NAME = constant(shortEventType(''));

/** Most are the end of the whole name. */
function shortNameOf({ at, length }: Range, eventType: string): Range {
  const short = shortEventType(eventType);
  return eventType.endsWith(short) ? { at: at + length - short.length, length: short.length } : NO_NAME;
}

/** A log record of any event may be about a node. */
function teachesName(name: string, isNaming: boolean): boolean {
  return isNaming ? name === 'adapter_type' || NAME_ATTRIBUTES.some((one) => one === name) : name === 'unique_id';
}

/** Attributes of a type are the same objects in all of its layouts. */
const PLANS = new WeakMap<AttributeLayout, AttributePlan>();

function planOf(attribute: AttributeLayout, eventType: string): AttributePlan {
  let plan = PLANS.get(attribute);
  if (plan === undefined) {
    plan = newPlan(attribute, eventType);
    PLANS.set(attribute, plan);
  }
  return plan;
}

function newPlan({ name, form, keyHead }: AttributeLayout, eventType: string): AttributePlan {
  const policy = attributePolicyOf(name, eventType);
  const special = name === 'sql' ? Use.sql : isInt64Field(name, '') ? Use.int64 : undefined;
  const shown = policy === 'keep' ? Use.copied : policy === 'deny' ? Use.denied : Use.shown;
  return {
    ...{ name, policy, isAdapter: name === 'adapter_type', mayBeNested: form === Form.nested },
    redacted: special ?? shown,
    whole: special ?? Use.copied,
    key: keyHead,
  };
}

/** The plans of layouts, made as these come. */
class RecordPlans {
  private plans = new Map<Layout, RecordPlan>();
  private forgottenCount = 0;
  private latest: RecordPlan | undefined;
  private latestLayout: Layout | undefined;

  private readonly layouts = itemReading().layouts;

  /** @param number of the layout */
  of(number: number): RecordPlan {
    const { layouts } = this;
    if (layouts.forgottenCount !== this.forgottenCount) {
      this.plans = new Map();
      this.latestLayout = undefined;
      this.forgottenCount = layouts.forgottenCount;
    }
    const layout = layouts.layout(number);
    if (layout === this.latestLayout && this.latest !== undefined) return this.latest;
    let plan = this.plans.get(layout);
    if (plan === undefined) {
      plan = new RecordPlan(layout);
      this.plans.set(layout, plan);
    }
    this.latestLayout = layout;
    this.latest = plan;
    return plan;
  }
}

let plans: RecordPlans | undefined;

/** Those of this thread. */
export function recordPlans(): RecordPlans {
  plans ??= new RecordPlans();
  return plans;
}
