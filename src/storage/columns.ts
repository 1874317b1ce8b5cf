import { camelCase, type SnakeCase, snakeCase } from '../core/snake-case.js';

type Plain = string | number | null | undefined;

/** An item as a row: each property is the column of its name, switches are 0 or 1, lists and objects JSON. */
export type ColumnsOf<Item> = {
  readonly [Name in keyof Item as SnakeCase<Name> & string]: Item[Name] extends Plain
    ? Item[Name]
    : Item[Name] extends boolean | undefined
      ? number
      : string;
};

/** How the properties of an item are kept that are neither texts nor numbers. */
type Encodings<Item> = {
  readonly [Name in keyof Item as Item[Name] extends Plain ? never : Name]-?: Item[Name] extends boolean
    ? 'switch'
    : 'json';
};

/** Makes rows of items, and items of rows. */
export class RowFormat<Item extends object> {
  private readonly encodings: ReadonlyMap<string, unknown>;

  constructor(encodings: Encodings<Item>) {
    this.encodings = new Map(Object.entries(encodings));
  }

  /** Makes columns of an item, or of some of its properties. */
  toRow<Part extends Partial<Item>>(part: Part): ColumnsOf<Part> {
    const entries = Object.entries(part).map(([name, value]) => [snakeCase(name), this.encoded(name, value)]);
    return Object.fromEntries(entries) as ColumnsOf<Part>;
  }

  /** Makes an item of its row. Only `toRow` writes its columns of JSON. */
  toItem(row: ColumnsOf<Item>): Item {
    const entries = Object.entries(row).map(([column, value]) => {
      const name = camelCase(column);
      return [name, this.decoded(name, value)];
    });
    return Object.fromEntries(entries) as Item;
  }

  private encoded(name: string, value: unknown): unknown {
    const encoding = this.encodings.get(name);
    if (encoding === undefined || value === undefined) return value;
    return encoding === 'json' ? JSON.stringify(value) : value === true ? 1 : 0;
  }

  private decoded(name: string, value: unknown): unknown {
    const encoding = this.encodings.get(name);
    if (encoding === undefined) return value;
    return encoding === 'json' ? JSON.parse(String(value)) : value !== 0;
  }
}
