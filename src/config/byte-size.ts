const UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
};

/** Reads `64MiB`, `1.5 GB` or `4096` as a number of bytes; `undefined` when it is none, or not a whole number from 1 on. */
export function parseByteSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  const unit = UNITS[(match?.[2] ?? '?').toLowerCase()];
  if (match === null || unit === undefined) return undefined;
  const bytes = Number(match[1]) * unit;
  return Number.isSafeInteger(bytes) && bytes > 0 ? bytes : undefined;
}

/** Spells a number of bytes as `parseByteSize` reads it, in the largest unit that divides it. */
export function formatByteSize(bytes: number): string {
  for (const [unit, size] of [['GiB', 2 ** 30] as const, ['MiB', 2 ** 20] as const, ['KiB', 2 ** 10] as const]) {
    if (bytes >= size && bytes % size === 0) return `${bytes / size}${unit}`;
  }
  return String(bytes);
}
