/** A number of things for people: `1 run`, `2 runs`, `0 queries`. */
export function counted(count: number, noun: string, plural = `${noun}s`): string {
  return `${count} ${count === 1 ? noun : plural}`;
}
