/** The name of a property as columns and documents spell it: `createdUnixMs` is `created_unix_ms`. */
export type SnakeCase<Name> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${SnakeCase<Rest>}`
  : Name;

/** The other way round. */
export type CamelCase<Name> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest> & string>}`
  : Name;

/** An object with its names, but not those of what is in it, in snake case. */
export type SnakeCased<Item> = { [Name in keyof Item as SnakeCase<Name> & string]: Item[Name] };
export type CamelCased<Item> = { [Name in keyof Item as CamelCase<Name> & string]: Item[Name] };

// Names are those of the program's own types, so they are few.
const snakeNames = new Map<string, string>();
const camelNames = new Map<string, string>();

export function snakeCase(name: string): string {
  const known = snakeNames.get(name) ?? name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  snakeNames.set(name, known);
  return known;
}

export function camelCase(name: string): string {
  const known = camelNames.get(name) ?? name.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
  camelNames.set(name, known);
  return known;
}

/** Spells the names of an object in snake case. */
export function snakeCased<Item extends object>(item: Item): SnakeCased<Item> {
  const entries = Object.entries(item).map(([name, value]) => [snakeCase(name), value]);
  return Object.fromEntries(entries) as SnakeCased<Item>;
}

/** Spells the names of an object in camel case. */
export function camelCased<Item extends object>(item: Item): CamelCased<Item> {
  const entries = Object.entries(item).map(([name, value]) => [camelCase(name), value]);
  return Object.fromEntries(entries) as CamelCased<Item>;
}
