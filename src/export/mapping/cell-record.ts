import { NanosClock, view } from '../../record/arena.js';
import { Attribute, attributeAt, Cell, cell, isText } from '../../record/cells.js';
import { isOpening } from '../../record/json-line.js';
import { type KnownText, texts } from '../../record/texts.js';
import type { MappedRecord } from './mapped-record.js';
import type { RecordPlan } from './record-plans.js';

/** Whether an attribute of the record that is looked at is an object or a list. */
export function isNested(plan: RecordPlan, index: number): boolean {
  if (plan.attributes[index]?.mayBeNested !== true) return false;
  const at = attributeAt(index);
  const start = cell(at + Attribute.valueStart);
  if (!isText(index) || start === cell(at + Attribute.valueEnd)) return false;
  return isOpening(view.getUint8(start));
}

/** The text of an attribute of the record that is looked at; `undefined` where it is none. @param index -1 for an attribute that is not there */
export function attributeText(plan: RecordPlan, index: number): KnownText | undefined {
  const hasText = index >= 0 && isText(index);
  return hasText && !isNested(plan, index) ? texts.ofAttribute(attributeAt(index)) : undefined;
}

/** The JSON of an attribute of the record that is looked at, an object or a list; `undefined` where it is none. */
export function attributeJson(plan: RecordPlan, index: number): KnownText | undefined {
  return index >= 0 && isNested(plan, index) ? texts.ofAttribute(attributeAt(index)) : undefined;
}

/**
 * A record that has cells: the end of a span, or a log record that tells no error. One object for all: what it says is about the
 * record that is looked at, and whose plan it was given.
 */
export class CellRecord implements MappedRecord {
  startSeconds = 0;
  startNanos = 0;
  endSeconds = 0;
  endNanos = 0;

  constructor(
    public plan: RecordPlan,
    public isLog: boolean,
  ) {}

  /** Reads the times of the record that is looked at. */
  use(plan: RecordPlan, isLog: boolean): void {
    this.plan = plan;
    this.isLog = isLog;
    CLOCK.read(cell(Cell.startHigh), cell(Cell.startLow));
    this.startSeconds = CLOCK.seconds;
    this.startNanos = CLOCK.nanos;
    CLOCK.read(cell(Cell.endHigh), cell(Cell.endLow));
    this.endSeconds = CLOCK.seconds;
    this.endNanos = CLOCK.nanos;
  }

  get eventType(): string {
    return this.plan.eventType;
  }

  get isEnd(): boolean {
    return !this.isLog;
  }

  get spanHigh(): number {
    return cell(Cell.idHigh);
  }

  get spanLow(): number {
    return cell(Cell.idLow);
  }

  get parentHigh(): number {
    return cell(Cell.parentHigh);
  }

  get parentLow(): number {
    return cell(Cell.parentLow);
  }

  get linkHigh(): number {
    return cell(Cell.linkHigh);
  }

  get linkLow(): number {
    return cell(Cell.linkLow);
  }

  get uniqueId(): string | undefined {
    return attributeText(this.plan, this.plan.uniqueId)?.text;
  }

  text(name: string): string | undefined {
    return attributeText(this.plan, this.plan.placeOf(name))?.text;
  }

  /** What says so has no cells here. */
  interruption(): undefined {
    return undefined;
  }
}

const CLOCK = new NanosClock();
