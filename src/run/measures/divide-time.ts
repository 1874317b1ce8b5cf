import type { UnixNano } from '../../record/unix-nano.js';

/** From when to when something went on. */
export interface Interval {
  readonly startTimeUnixNano: UnixNano;
  readonly endTimeUnixNano: UnixNano;
}

/** A length of time, divided among what went on in it. All shares and the rest add up to the length, to the nanosecond. */
export interface DividedTime {
  /** Of each interval of each level, in their order; in nanoseconds. */
  readonly shares: readonly (readonly bigint[])[];
  /** The time in which nothing went on; in nanoseconds. */
  readonly restNano: bigint;
}

/**
 * Divides a length of time among what went on in it. Each moment belongs to the first level of which something was under way,
 * and is shared equally by all that was under way on that level: where 20 queries run at a time, each takes a twentieth.
 * @param whole at most 104 days; what an interval has outside it is left out
 * @param levels what counts first stands first
 */
export function divideTime(whole: Interval, levels: readonly (readonly Interval[])[]): DividedTime {
  const lengthNano = Math.max(0, Number(whole.endTimeUnixNano - whole.startTimeUnixNano));
  const within = (time: UnixNano) => Math.min(lengthNano, Math.max(0, Number(time - whole.startTimeUnixNano)));
  const clipped = levels.map((level) => ({
    starts: Float64Array.from(level, ({ startTimeUnixNano }) => within(startTimeUnixNano)),
    // A clock that was set back lets something end before its start: it took no time.
    ends: Float64Array.from(level, ({ startTimeUnixNano, endTimeUnixNano }) =>
      Math.max(within(startTimeUnixNano), within(endTimeUnixNano)),
    ),
  }));
  const times = sortedTimes(clipped.flatMap(({ starts, ends }) => [starts, ends]));
  const active = clipped.map(({ starts, ends }) => activeAfter(times, starts, ends));
  const { clocks, totals } = sweep(times, active);
  const shares = clipped.map(({ starts, ends }, level) => {
    const clock = clocks[level] ?? times;
    const at = (time: number) => clock[indexOf(times, time)] ?? 0;
    return wholeShares(
      starts.map((start, index) => at(ends[index] ?? start) - at(start)),
      totals[level] ?? 0,
    );
  });
  const restNano = lengthNano - totals.reduce((sum, total) => sum + total, 0);
  return { shares, restNano: BigInt(restNano) };
}

/** All times, each once, in order. */
function sortedTimes(lists: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(lists.reduce((sum, { length }) => sum + length, 0));
  let length = 0;
  for (const list of lists) {
    all.set(list, length);
    length += list.length;
  }
  all.sort();
  let kept = 0;
  for (const time of all) if (kept === 0 || all[kept - 1] !== time) all[kept++] = time;
  return all.subarray(0, kept);
}

/** How many intervals are under way from each of these times to the next. */
function activeAfter(times: Float64Array, starts: Float64Array, ends: Float64Array): Int32Array {
  const changes = new Int32Array(times.length);
  const add = (time: number, change: number) => {
    const at = indexOf(times, time);
    changes[at] = (changes[at] ?? 0) + change;
  };
  for (const start of starts) add(start, 1);
  for (const end of ends) add(end, -1);
  let count = 0;
  return changes.map((change) => {
    count += change;
    return count;
  });
}

/**
 * Goes through the times once. The clock of a level stands where no time is the level's, and goes slower the more is under way
 * on it, so what an interval takes is by how far its clock went on.
 */
function sweep(times: Float64Array, active: readonly Int32Array[]) {
  const clocks = active.map(() => new Float64Array(times.length));
  const totals = active.map(() => 0);
  for (let at = 0; at + 1 < times.length; at++) {
    const time = (times[at + 1] ?? 0) - (times[at] ?? 0);
    const level = active.findIndex((counts) => (counts[at] ?? 0) > 0);
    for (const clock of clocks) clock[at + 1] = clock[at] ?? 0;
    const clock = clocks[level];
    if (clock === undefined) continue;
    clock[at + 1] = (clock[at] ?? 0) + time / (active[level]?.[at] ?? 1);
    totals[level] = (totals[level] ?? 0) + time;
  }
  return { clocks, totals };
}

/** Shares in whole nanoseconds, each at most one off, that add up to the total. */
function wholeShares(shares: Float64Array, total: number): readonly bigint[] {
  const sum = shares.reduce((so, share) => so + share, 0);
  if (sum === 0) return Array.from(shares, () => 0n);
  let before = 0;
  let given = 0;
  return Array.from(shares, (share, index) => {
    before += share;
    const until = index === shares.length - 1 ? total : Math.min(total, Math.round((before / sum) * total));
    const own = until - given;
    given = until;
    return BigInt(own);
  });
}

/** Where a time stands among the sorted times. */
function indexOf(times: Float64Array, time: number): number {
  let low = 0;
  for (let high = times.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) < time) low = middle + 1;
    else high = middle;
  }
  return low;
}
