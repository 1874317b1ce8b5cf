import { randomBytes } from 'node:crypto';
import { systemClock } from '../../component/clock.js';
import { ksuid } from '../../component/ksuid.js';
import type { Announcing } from './run-announcer.js';

/** How events come to be where nobody says otherwise: whatever opens the state keeps the outbox complete. */
export const ANNOUNCING: Announcing = {
  clock: systemClock,
  newKsuid: (nowUnixMs) => ksuid(nowUnixMs, randomBytes),
  isSilent: false,
  onEvents: () => {},
};
