import fc from 'fast-check';
import type { ExportRequest } from '../../src/otlp/export-request.js';
import { JsonCodec } from '../../src/otlp/json-codec.js';
import { ProtobufCodec } from '../../src/otlp/protobuf-codec.js';
import type { Signal } from '../../src/record/record-batch.js';
import type { Corpus } from './corpus.js';
import { Dice } from './dice.js';
import { mutateBytes, mutateWire } from './mutate.js';
import { logsRequests, tracesRequests } from './otlp-arbitrary.js';

/** A body to try. */
export interface FuzzBody {
  readonly signal: Signal;
  readonly encoding: 'protobuf' | 'json';
  readonly bytes: Buffer;
  /** The same request in the other encoding, where it is a whole one. */
  readonly twin?: Buffer;
}

/** Body `number` of a seed: always the same. Most are real ones with something wrong, some whole, some made up. */
export class FuzzBodies {
  private readonly protobuf = new ProtobufCodec();
  private readonly json = new JsonCodec();

  constructor(
    private readonly seed: number,
    private readonly corpus: Corpus,
  ) {}

  at(number: number): FuzzBody {
    const dice = new Dice(this.seed, number);
    const signal: Signal = dice.oneIn(5) ? 'logs' : 'traces';
    if (dice.oneIn(8)) return this.madeUp(signal, dice);
    if (dice.oneIn(10)) {
      const list = signal === 'traces' ? this.corpus.tracesJson : this.corpus.logsJson;
      let bytes = dice.pick(list);
      for (let changes = 1 + dice.below(3); changes > 0; changes--) bytes = mutateBytes(bytes, list, dice);
      return { signal, encoding: 'json', bytes };
    }
    const list = this.corpus[signal];
    const real = dice.pick(list);
    const bytes = dice.oneIn(8) ? real : mutateWire(real, signal, list, dice);
    return { signal, encoding: 'protobuf', bytes };
  }

  private madeUp(signal: Signal, dice: Dice): FuzzBody {
    const options = { seed: dice.bits() | 0, numRuns: 1 };
    const [request] = fc.sample<ExportRequest>(signal === 'traces' ? tracesRequests : logsRequests, options);
    if (request === undefined) throw new RangeError('nothing was made up');
    const bytes = Buffer.from(this.protobuf.encode(request));
    if (dice.oneIn(2)) return { signal, encoding: 'protobuf', bytes, twin: Buffer.from(this.json.encode(request)) };
    return { signal, encoding: 'protobuf', bytes: mutateWire(bytes, signal, this.corpus[signal], dice) };
  }
}
