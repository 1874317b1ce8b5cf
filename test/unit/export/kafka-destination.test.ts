import { describe, expect, it } from 'vitest';
import { KafkaDestination, type TopicWriter } from '../../../src/export/kafka-destination.js';
import { loggedRecords } from '../../../src/log/appended.js';
import { JsonCodec } from '../../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../../src/otlp/protobuf-codec.js';
import { MemoryRecordLog, spanEnd, traceIdOf } from '../../fake/memory-record-log.js';
import { SimpleRunMapper } from '../../fake/simple-run-mapper.js';

const RUN = traceIdOf(1);
const CODECS = { json: new JsonCodec(), protobuf: new ProtobufCodec() };
const NEVER = new AbortController().signal;
type Written = Parameters<TopicWriter['send']>[0];

/** What a broker takes that refuses messages of more bytes than it says. */
class Topics implements TopicWriter {
  readonly written: Written[] = [];
  private limit = 1_000_000;

  constructor(private readonly maxBrokerBytes = Infinity) {}

  maxBytes(): number {
    return this.limit;
  }

  async send(message: Written): Promise<'written' | 'tooLarge'> {
    if (message.value.length > this.maxBrokerBytes) {
      this.limit = Math.min(this.limit, message.value.length / 2);
      return 'tooLarge';
    }
    this.written.push(message);
    return 'written';
  }

  async close(): Promise<void> {}
}

function destination(producer: TopicWriter): KafkaDestination {
  const settings = { topics: { traces: 'spans', logs: 'logs' }, encoding: 'otlp_proto' } as const;
  const masked = (text: string) => text.replaceAll('hidden', '****');
  return new KafkaDestination('lake', ['traces'], settings, { producer, codecs: async () => CODECS, masked });
}

function spans(count: number) {
  const log = new MemoryRecordLog();
  const mapper = new SimpleRunMapper(count);
  const numbers = Array.from({ length: count }, (_, index) => index + 1);
  mapper.push(log.append(RUN, ...numbers.map((number) => spanEnd(RUN, number))).pieces.flatMap(loggedRecords));
  return { signal: 'traces', ranges: mapper.take(true).traces } as const;
}
const countIn = ({ value }: Written) =>
  CODECS.protobuf
    .decode('traces', value)
    .resources.flatMap(({ scopes }) => scopes.flatMap(({ records }) => [...records])).length;

describe('a destination in Kafka', () => {
  it('writes the items as one request under their trace id', async () => {
    const topics = new Topics();
    const outcome = await destination(topics).send(spans(3), NEVER);
    expect(outcome).toMatchObject({ result: { kind: 'accepted' }, itemCount: 3 });
    expect(topics.written.map(({ topic, key }) => [topic, key])).toEqual([['spans', RUN]]);
    expect(topics.written.map(countIn)).toEqual([3]);
  });

  it('splits what the broker does not take, and refuses one item that it does not take alone', async () => {
    const batch = spans(8);
    const { window } = batch.ranges[0] ?? {};
    const size = (window?.endOf(0) ?? 0) - (window?.startOf(0) ?? 0);
    const small = new Topics(size * 4);
    const { itemCount } = await destination(small).send(batch, NEVER);
    expect(itemCount).toBeGreaterThan(0);
    expect(itemCount).toBeLessThan(8);
    expect(small.written.map(countIn)).toEqual([itemCount]);

    const outcome = await destination(new Topics(size - 1)).send(batch, NEVER);
    expect(outcome.itemCount).toBe(1);
    expect(outcome.result).toMatchObject({
      kind: 'refused',
      message: expect.stringContaining(`span 1 of trace ${RUN}`),
    });
  });

  it('tries again what failed, shows no secret, and ends when it is told to', async () => {
    const failing = new Topics();
    failing.send = async () => Promise.reject(new Error('not with hidden'));
    const batch = spans(1);
    const { result } = await destination(failing).send(batch, NEVER);
    expect(result).toMatchObject({ kind: 'retryable', message: 'not with ****' });

    const silent = new Topics();
    silent.send = () => new Promise(() => {});
    const stop = new AbortController();
    const sending = destination(silent).send(batch, stop.signal);
    stop.abort();
    expect((await sending).result).toMatchObject({ kind: 'retryable' });
  });

  it('writes the telemetry of other services by trace, split where it has to be', async () => {
    const topics = new Topics();
    const span = (trace: string, name: string) => ({ traceId: trace.repeat(32), spanId: '1'.repeat(16), name });
    const spansOf = [span('a', 'x'.repeat(500)), span('b', 'y'), span('a', 'z'.repeat(500))];
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: spansOf }] }] });
    expect(await destination(topics).forward('traces', body, NEVER)).toMatchObject({ kind: 'accepted' });
    expect(topics.written.map(({ key }) => key)).toEqual(['a'.repeat(32), 'b'.repeat(32)]);

    const small = new Topics(700);
    expect(await destination(small).forward('traces', body, NEVER)).toMatchObject({ kind: 'accepted' });
    expect(small.written.map(({ key }) => key?.[0])).toEqual(['a', 'a', 'b']);

    const tiny = new Topics(300);
    expect(await destination(tiny).forward('traces', body, NEVER)).toMatchObject({ kind: 'refused' });
    expect(tiny.written.map(({ key }) => key?.[0])).toEqual(['b']);
  });
});
