import { isSame } from '../bytes';
import { ATTRIBUTE_COUNT, EVENT, FIRST_LINK, LINK_COUNT, PARENT, SPAN, START_TIME } from './cells';
import { EVENT_PLANS } from './memory-map';
import { EventType } from './templates';
import { PLAIN_TEXT } from './values';

const PLACE_ROLES: u32 = 3;
const SPAN_ID_DIGITS: u32 = 16;

/**
 * Whether a start and an end are of one span, and the end says all that a run remembers of the start, so that the end alone
 * may stand for both: only spans of which the line is enough, see `EventPlan.isLineEnough`.
 */
export function areOfOneSpan(startCells: u32, start: usize, endCells: u32, end: usize): bool {
  const event = changetype<EventType | null>(load<u32>(EVENT_PLANS + 4 * load<u32>(endCells + 4 * EVENT)));
  if (event == null || event.spanKind == 0) return false;
  if (!isSame(startCells + 4 * SPAN, endCells + 4 * SPAN, 4 * (START_TIME + 2 - SPAN))) return false;
  if (!areEqual(startCells, endCells, EVENT) || !areEqual(startCells, endCells, LINK_COUNT)) return false;
  if (load<u32>(endCells + 4 * LINK_COUNT) != 0) {
    const link = 4 * (FIRST_LINK + 1);
    if (!isSame(start + load<u32>(startCells + link), end + load<u32>(endCells + link), SPAN_ID_DIGITS)) return false;
  }
  for (let role: u32 = 1; role <= PLACE_ROLES; role++) {
    const inStart = cellOfRole(startCells, role);
    const inEnd = cellOfRole(endCells, role);
    if (inStart == 0 && inEnd == 0) continue;
    if (inStart == 0 || inEnd == 0 || load<u32>(inStart) != load<u32>(inEnd)) return false;
    if ((load<u32>(inStart) & KIND_MASK) != PLAIN_TEXT) return false;
    const from = load<u32>(inStart + 4);
    const length = load<u32>(inStart + 8) - from;
    if (load<u32>(inEnd + 8) - load<u32>(inEnd + 4) != length) return false;
    if (!isSame(start + from, end + load<u32>(inEnd + 4), length)) return false;
  }
  return true;
}

const KIND_MASK: u32 = 7;
const ROLE_SHIFT: u32 = 3;
const ROLE_MASK: u32 = 31;

@inline
function areEqual(cells: u32, others: u32, which: u32): bool {
  return load<u32>(cells + 4 * which) == load<u32>(others + 4 * which);
}

/** Where the attribute with a role begins in a line's cells; 0 where there is none. */
function cellOfRole(cells: u32, role: u32): u32 {
  let cell = cells + 4 * (FIRST_LINK + 2 * load<u32>(cells + 4 * LINK_COUNT));
  for (let left = load<u32>(cells + 4 * ATTRIBUTE_COUNT); left > 0; left--, cell += 12) {
    if (((load<u32>(cell) >> ROLE_SHIFT) & ROLE_MASK) == role) return cell;
  }
  return 0;
}
