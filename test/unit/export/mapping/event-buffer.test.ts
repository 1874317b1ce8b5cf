import { describe, expect, it } from 'vitest';
import { EventBuffer } from '../../../../src/export/mapping/event-buffer.js';
import { buffer as arena, REGION } from '../../../../src/record/arena.js';

function add(events: EventBuffer, high: number, low: number, text: string): void {
  const at = REGION.scratch;
  events.add(high, low, at, at + arena.write(text, at, 'latin1'));
}

describe('events that wait for their spans', () => {
  it('are taken in the order in which they came, byte for byte, and once', () => {
    const events = new EventBuffer(1000, 50_000);
    const all = new Map<number, string[]>();
    for (let number = 0; number < 20_000; number++) {
      const span = number % 700;
      const text = `\xff\x80${number}`.padEnd(number % 41, '\0');
      all.set(span, [...(all.get(span) ?? []), text]);
      if (number % 3 === 0) events.addText(7, span, text);
      else add(events, 7, span, text);
      // The first span's wait to the end, and with them the blocks of those that came beside them.
      if (number % 5 !== 4 || span === 0) continue;
      expect(events.take(7, span).texts()).toEqual(all.get(span));
      expect(events.take(7, span).texts()).toEqual([]);
      all.delete(span);
    }
    for (const [span, texts] of all) expect(events.take(7, span).texts()).toEqual(texts);
    expect(events.waitingSpans()).toEqual([]);
  });

  it('are moved together where few of many are left, a long one too', () => {
    const events = new EventBuffer(1000, 50_000);
    const long = 'x'.repeat(300_000);
    events.addText(0, 1, long);
    for (let number = 0; number < 5000; number++) {
      if (number % 100 === 0) add(events, 0, 1, `kept ${number}`);
      add(events, 1, number, 'y'.repeat(500));
      expect(events.take(1, number).byteCount).toBe(500);
    }
    const texts = events.take(0, 1).texts();
    expect(texts[0]).toBe(long);
    expect(texts.slice(1)).toEqual(Array.from({ length: 50 }, (_, number) => `kept ${number * 100}`));
  });

  it('count what had no room, of a span and over all', () => {
    const events = new EventBuffer(2, 3);
    for (const text of ['a', 'b', 'c']) add(events, 0, 1, text);
    for (const text of ['d', 'e']) add(events, 0, 2, text);
    add(events, 0, 3, 'f');
    expect(events.waitingSpans()).toEqual([
      [0, 1],
      [0, 2],
    ]);
    const copy = events.copy();
    for (const one of [events, copy]) {
      const first = one.take(0, 1);
      expect([first.texts(), first.droppedCount]).toEqual([['a', 'b'], 1]);
      const second = one.take(0, 2);
      expect([second.texts(), second.droppedCount]).toEqual([['d'], 1]);
      expect(one.take(0, 3).texts()).toEqual([]);
    }
  });
});
