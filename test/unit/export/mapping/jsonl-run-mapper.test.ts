import { describe, expect, it } from 'vitest';
import { KafkaJsonlDestination, type TopicWriter } from '../../../../src/export/kafka-destination.js';
import { JsonlRunMapper } from '../../../../src/export/run-mapper.js';
import { cutRanges, type MappedItems } from '../../../../src/export/wire/item-window.js';
import type { Resource } from '../../../../src/record/attributes.js';
import { itemsOf } from '../../../fake/mapped-items.js';
import { sampleLines, sampleTraceId } from '../../../fake/sample-run.js';

const RUN = 'parse';
const RESOURCE: Resource = { attributes: {}, scope: { name: '', version: '' } };
const push = (mapper: JsonlRunMapper, offset: number, text: string) =>
  mapper.pushLines({ resource: RESOURCE, offset, lines: Buffer.from(text) });

/** Sends items until all are sent, to a broker that takes messages of so many bytes. */
async function messagesOf({ logs }: MappedItems, maxBytes = 1_000_000) {
  const messages: Parameters<TopicWriter['send']>[0][] = [];
  const producer: TopicWriter = {
    maxBytes: () => maxBytes,
    send: async (message) => {
      messages.push(message);
      return 'written';
    },
    close: async () => {},
  };
  const destination = new KafkaJsonlDestination('lake', 'lines', { producer, masked: (text) => text });
  for (let ranges = logs; ranges.length > 0; ) {
    const { itemCount } = await destination.send({ signal: 'logs', ranges }, new AbortController().signal);
    ranges = cutRanges(ranges, itemCount)[1];
  }
  return messages.map(({ key, value }) => ({ key, text: Buffer.from(value).toString('utf8') }));
}

describe('records that are sent as their lines', () => {
  it('are the lines of the log, byte for byte, under their trace id', async () => {
    const mapper = new JsonlRunMapper();
    const lines = sampleLines(RUN);
    const text = `${lines.join('\n')}\n`;
    expect(push(mapper, 0, text)).toBe(0);
    const items = mapper.take();
    expect(await messagesOf(items)).toEqual([{ key: sampleTraceId(RUN), text }]);
    const small = await messagesOf(items, 4_000);
    expect(small.map((message) => message.text).join('')).toBe(text);
    expect(small.length).toBeGreaterThan(1);
    expect(small.every((message) => message.text.length <= 4_000 || message.text.indexOf('\n') > 4_000 - 2)).toBe(true);
    expect(itemsOf(mapper.take())).toEqual([]);
  });

  it('are anchored where they stand, are not made again where they were sent, and pass damaged ones over', () => {
    const [first = '', second = ''] = sampleLines(RUN);
    const at = Buffer.byteLength(first) + 1;
    const whole = new JsonlRunMapper();
    expect(push(whole, 0, `${first}\nno record\n`)).toBe(1);
    push(whole, at + 10, `${second}\n`);
    expect(itemsOf(whole.take()).map(({ anchorOffset }) => anchorOffset)).toEqual([0, at + 10]);

    const resumed = new JsonlRunMapper();
    resumed.skipTo(0, at);
    push(resumed, 0, `${first}\n${second}\n`);
    expect(itemsOf(resumed.take()).map(({ anchorOffset }) => anchorOffset)).toEqual([at]);
  });
});
