/** Names further away than this many edits are no misspelling. */
const MAX_EDITS = 3;

/** The candidate that `name` most likely meant: few edits away, counted by its length; `undefined` when none is close. */
export function nearestName(name: string, candidates: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestEdits = Math.min(MAX_EDITS, Math.floor(name.length / 3)) + 1;
  for (const candidate of candidates) {
    const edits = countEdits(name.toLowerCase(), candidate.toLowerCase());
    if (edits < bestEdits) [best, bestEdits] = [candidate, edits];
  }
  return best;
}

/** Insertions, deletions, substitutions and swaps of neighbours between two words. */
function countEdits(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      let edits = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
      );
      if (row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1]) {
        edits = Math.min(edits, (beforeLast[column - 2] ?? 0) + 1);
      }
      current.push(edits);
    }
    [beforeLast, last] = [last, current];
  }
  return last[to.length] ?? 0;
}
