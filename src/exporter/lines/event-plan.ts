import { EVENT_TYPE } from '../mapping/event-types.js';
import { isStableName } from '../mapping/span-name.js';
import { encodeAttribute } from '../wire/encode-attributes.js';
import { SPAN } from '../wire/encode-span.js';
import { WireWriter } from '../wire/wire-writer.js';
import { AttributePlan } from './attribute-plan.js';
import { Literal } from './literal.js';

/** Different attributes that one event type may have; lines with more are read in the general way. */
const MAX_ATTRIBUTES = 256;
/** Longest name of an attribute whose length is one byte wherever it is written. */
const MAX_NAME_LENGTH = 100;

/** Names that the mapping writes itself, or that JavaScript objects treat in a way of their own. */
export const SPECIAL_NAME = /^(?:event_type|error\.type|__proto__|\d+|run_bridge\..*|db\..*|test\.case\..*)$/;

/** How the spans of one event type are read and exported. */
export class EventPlan {
  /** `<event type>","attributes":{` */
  readonly tail: Literal;
  /** The attribute `event_type`, encoded. */
  readonly typeAttribute: Buffer;
  /** Whether the span's name is exported as it stands. */
  readonly isNameKept: boolean;
  /** Whether such lines are left to the general parser: there are a few in a run, and the mapping has rules for them alone. */
  readonly isGeneral: boolean;
  /** Stands before the first attribute, for what follows it. */
  readonly before = { next: [undefined, undefined] as AttributePlan['next'] };
  private readonly byName = new Map<string, AttributePlan>();

  constructor(
    readonly index: number,
    readonly eventType: string,
    private readonly plans: AttributePlan[],
  ) {
    this.tail = new Literal(`${eventType}","attributes":{`);
    const out = new WireWriter(128);
    encodeAttribute(out, SPAN.attributes, 'event_type', eventType);
    this.typeAttribute = out.bytes.subarray(0, out.length);
    this.isNameKept = isStableName(eventType);
    this.isGeneral = eventType === EVENT_TYPE.invocation || eventType === EVENT_TYPE.process;
  }

  /** The plan of an attribute that came before. */
  knownAttribute(name: string): AttributePlan | undefined {
    return this.byName.get(name);
  }

  /** The plan of an attribute; `undefined` where lines with it are read in the general way. */
  attribute(name: string): AttributePlan | undefined {
    const known = this.byName.get(name);
    if (known !== undefined) return known;
    const isUsual = name !== '' && name.length <= MAX_NAME_LENGTH && !SPECIAL_NAME.test(name);
    if (!isUsual || this.byName.size >= MAX_ATTRIBUTES) return undefined;
    const plan = new AttributePlan(this.plans.length, name, this.eventType);
    this.plans.push(plan);
    this.byName.set(name, plan);
    return plan;
  }
}
