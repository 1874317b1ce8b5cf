/** A number and its noun: `1 error`, `1,200 errors`. @param plural default: with an s */
export function countText(count: number, noun: string, plural = `${noun}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? noun : plural}`;
}
