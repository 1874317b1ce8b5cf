import { counted } from '../../core/text.js';

const DAY_S = 86_400;
const HOUR_S = 3_600;
const MINUTE_S = 60;

/** An age in its two largest units: `325 days 13 h`, `2 h 5 min`, `40 s`. */
export function ageText(seconds: number): string {
  const days = Math.floor(seconds / DAY_S);
  const hours = Math.floor((seconds % DAY_S) / HOUR_S);
  const minutes = Math.floor((seconds % HOUR_S) / MINUTE_S);
  if (days > 0) return `${counted(days, 'day')}${hours > 0 ? ` ${hours} h` : ''}`;
  if (hours > 0) return `${hours} h${minutes > 0 ? ` ${minutes} min` : ''}`;
  return minutes > 0 ? `${minutes} min` : `${Math.floor(seconds)} s`;
}
