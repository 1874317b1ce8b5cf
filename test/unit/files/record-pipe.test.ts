import { describe, expect, it } from 'vitest';
import { RecordPipe, type RecordPipeOptions } from '../../../src/files/record-pipe.js';
import { ConsumeError } from '../../../src/record/record-batch.js';
import { formatRecordLine } from '../../../src/record/record-line.js';
import { FakeClock } from '../../fake/fake-clock.js';
import { MemoryConsumer } from '../../fake/memory-consumer.js';
import { untilTurned } from '../../tool/until.js';
import { sampleLines } from './reading.js';

const records = sampleLines('parse');

/** A pipe, and what comes out of it. */
function piping(options: Partial<RecordPipeOptions> = {}) {
  const consumer = new MemoryConsumer();
  const clock = new FakeClock();
  const passed: Uint8Array[] = [];
  const rejects: string[] = [];
  const failures: unknown[] = [];
  const pipe = new RecordPipe(
    { isTee: false, ...options },
    {
      consumer,
      clock,
      passOn: async (bytes) => void passed.push(bytes),
      onReject: async ({ place, reason }) => void rejects.push(`${place}: ${reason}`),
      onFailed: (error) => failures.push(error),
    },
  );
  return {
    consumer,
    clock,
    pipe,
    rejects,
    failures,
    passed: () => Buffer.concat(passed).toString('latin1'),
    kept: () =>
      consumer.deliveries.flatMap(({ batches }) => batches.flatMap((batch) => batch.records.map(formatRecordLine))),
  };
}

async function* stream(...texts: readonly string[]) {
  for (const text of texts) yield Buffer.from(text, 'latin1');
}
const asLines = (lines: readonly string[]) => lines.map((line) => `${line}\n`).join('');

describe('RecordPipe', () => {
  it('keeps the records and passes on what is none, byte for byte', async () => {
    const { pipe, kept, passed, rejects } = piping();
    const other = 'plain\n\xff\xfe\x00\r\n{"info":1}\n';
    await pipe.run(stream(other, asLines(records), other, 'no line break'));
    expect(kept()).toEqual(records);
    expect(passed()).toBe(`${other}${other}no line break`);
    expect([rejects, pipe.store.recordCount]).toEqual([[], records.length]);
  });

  it('passes on everything as it comes when it is to', async () => {
    const { pipe, kept, passed } = piping({ isTee: true });
    const all = `text\n${asLines(records)}half`;
    await pipe.run(stream(all.slice(0, 777), all.slice(777)));
    expect([kept(), passed()]).toEqual([records, all]);
  });

  it('passes on what was meant as a record and is none, and tells it with its place', async () => {
    const { pipe, kept, passed, rejects } = piping({ maxLineBytes: 20_000 });
    const long = `{"record_type":"SpanEnd","x":"${'y'.repeat(30_000)}"}\n`;
    const bad = '{"record_type":"SpanStart"}\n';
    await pipe.run(stream(`${records[0]}\n${bad}`, long, `${records[1]}\n{"record_type":"Log`));
    expect(kept()).toEqual(records.slice(0, 2));
    expect(passed()).toBe(`${bad}${long}{"record_type":"Log`);
    expect(rejects).toEqual([
      'line 2: trace_id must be a string',
      'line 3: longer than 20000 bytes',
      expect.stringMatching(/^line 5: not JSON/),
    ]);
  });

  it('goes on while the consumer is slow, up to 8 MiB', async () => {
    const { pipe, consumer, passed, kept } = piping();
    consumer.hold();
    const filler = records[0]?.replace('"attributes":{', `"attributes":{"x":"${'z'.repeat(2 ** 20)}",`) ?? '';
    const many = Array.from({ length: 40 }, (_, index) =>
      filler.replace(/"span_id":"\w+"/, `"span_id":"${(index + 1).toString(16).padStart(16, '0')}"`),
    );
    const running = pipe.run(stream('begin\n', ...many.map((line) => `${line}\n`), 'end\n'));
    await untilTurned(() => passed() === 'begin\n');
    consumer.release();
    await running;
    expect([passed(), kept().length]).toEqual(['begin\nend\n', 40]);
  });

  it('tries a consumer again that cannot take more just now', async () => {
    const { pipe, consumer, clock, kept, failures } = piping();
    let attempts = 0;
    const consume = consumer.consume.bind(consumer);
    consumer.consume = async (delivery) => {
      attempts += 1;
      if (attempts < 3) throw new ConsumeError('overloaded', 'full', 1_000);
      await consume(delivery);
    };
    const running = pipe.run(stream(asLines(records)));
    for (const attempt of [1, 2]) {
      await untilTurned(() => attempts === attempt && clock.nextTimerMs === 1_000);
      clock.advance(1_000);
    }
    await running;
    expect([kept(), failures]).toEqual([records, []]);
  });

  it('passes the records on when they cannot be kept, those that waited first, and says so once', async () => {
    const { pipe, consumer, passed, failures } = piping();
    const error = new ConsumeError('refused', 'the disk is full', 0);
    consumer.failWith(error);
    const [first, rest] = [asLines(records.slice(0, 5)), asLines(records.slice(5))];
    async function* slowly() {
      yield Buffer.from(first);
      await untilTurned(() => failures.length > 0);
      yield Buffer.from(`plain\n${rest}`);
    }
    await pipe.run(slowly());
    expect([passed(), failures]).toEqual([`${first}plain\n${rest}`, [error]]);
    expect(pipe.store.recordCount).toBe(0);
  });
});
