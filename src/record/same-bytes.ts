/** Whether the bytes from `start` to `end` are these. By a loop: for the few that ids, keys and names have, a call into the runtime takes longer. */
export function isSame(bytes: Uint8Array, from: Uint8Array, start: number, end: number): boolean {
  if (bytes.length !== end - start) return false;
  for (let index = 0; index < bytes.length; index++) if (bytes[index] !== from[start + index]) return false;
  return true;
}
