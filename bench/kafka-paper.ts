import { markdownTable } from './results.js';

/** What was measured, and is multiplied on paper. Figures of a million spans are with the log records that came with them. */
export interface PaperInputs {
  readonly receiver: ProcessCost;
  readonly builder: ProcessCost;
  /** CPU seconds of a builder that a million spans take on top where they are sent to an OTLP destination; `null` where that was not measured. */
  readonly exportCpuS: number | null;
  /** CPU seconds of one broker for a million spans that are written and read once. */
  readonly kafkaS: number;
  /** CPU seconds of PostgreSQL for a million spans. */
  readonly postgresS: number;
  readonly spansPerRun: number;
  readonly messagesPerRun: number;
  /** Of messages. */
  readonly kafkaBytesPerSpan: number;
  readonly logBytesPerRun: number;
  /** At which pace each run was sent, in spans a second. */
  readonly runSpansS: number;
  /** Requests to the bucket and work of the database a run, at that pace. */
  readonly perRun: {
    readonly segments: number;
    readonly puts: number;
    readonly gets: number;
    readonly lists: number;
    readonly deletes: number;
    readonly transactions: number;
    /** Of the database. */
    readonly walBytes: number;
  };
  /** What a run leaves in the bucket, by its spans. */
  readonly keptBytesPerSpan: number;
  /** What went there: segments as well. */
  readonly putBytesPerSpan: number;
  /** What a further run takes that is open, in MiB. */
  readonly openRunMiB: number;
  /** Until others have the partitions of a builder that was killed, or ended in order, and until what was sent before the kill is in the bucket, in seconds. */
  readonly takeOver: { readonly killedS: number; readonly endedS: number; readonly caughtUpS: number };
}

/** What a process takes for a million spans. */
export interface ProcessCost {
  /** User and system time of all its threads, in seconds. */
  readonly cpuS: number;
  /** Of its first thread, which is one core at most. */
  readonly mainS: number;
  readonly peakMiB: number;
}

const SPANS_PER_SECOND = 1_000_000;
/** No part is to be busier than this, so that there is room for a peak and for a take-over. */
const LOAD = 0.6;
const PARTITIONS_PER_BUILDER = 2;
const REPLICAS = 3;
/** How long Kafka keeps what was read, which is how long the bucket or the database may be away, in hours. */
const TOPIC_HOURS = 6;
/** How long runs are kept in the bucket, in days. */
const KEPT_DAYS = 30;
/** As of a builder: a segment is closed at this size, in bytes, or so long after its first record, in seconds. */
const SEGMENT_BYTES = 8 * 2 ** 20;
const SEGMENT_S = 10;
/** What is read again after a crash, in seconds: what came since the last segments, and what waited for names of spans then. */
const REREAD_S = SEGMENT_S + 6;
/** Spans a second of one run: an engine that never waits, and one that mostly waits for its warehouse. */
const PACES = [2_000, 20] as const;
/** What one of them is assumed to carry. */
const BROKER = { vcpus: 16, networkBytesS: 1.25e9, diskBytesS: 500e6, partitionReplicas: 4_000 };
const POSTGRES_COMMITS_S = 10_000;
const POSTGRES_CONNECTIONS = 5_000;
/** Of a builder to the database (`MAX_CONNECTIONS`). */
const CONNECTIONS_PER_PROCESS = 10;
/** Writes and removals, and reads, a second of one partition of a bucket's keys, as its provider names them. */
const BUCKET = { writesS: 3_500, readsS: 5_500 };
/** US dollars, list prices of AWS in us-east-1 on demand, mid-2026: m7g, S3 Standard beyond 500 TB, gp3, traffic between zones in both directions. */
const PRICE = {
  vcpuHour: 0.0408,
  putsOfThousand: 0.005,
  getsOfThousand: 0.0004,
  gbMonth: 0.021,
  diskGbMonth: 0.08,
  zoneGb: 0.02,
};
const HOURS_PER_MONTH = 730;

/** What a million spans a second need, and where each part gives way: Markdown, each figure with how it comes of those that were measured. */
export function paper(inputs: PaperInputs): string {
  const need = needsOf(inputs);
  return [HEADING, needsTable(inputs, need), moneyTable(need), limitsTable(inputs, need), ASSUMPTIONS].join('\n\n');
}

type Needs = ReturnType<typeof needsOf>;

function needsOf(inputs: PaperInputs) {
  const { receiver, builder, perRun, spansPerRun, kafkaBytesPerSpan, kafkaS, postgresS } = inputs;
  const runsS = SPANS_PER_SECOND / spansPerRun;
  const builders = Math.ceil(builder.mainS / LOAD);
  const bytesS = SPANS_PER_SECOND * kafkaBytesPerSpan;
  const brokerCores = REPLICAS * kafkaS;
  const perBroker = {
    disk: (REPLICAS * bytesS) / (BROKER.diskBytesS * LOAD),
    network: (REPLICAS * bytesS) / (BROKER.networkBytesS * LOAD),
    cpu: brokerCores / (BROKER.vcpus * LOAD),
  };
  // Rows of a run are saved after its log is stored, which closes segments as well.
  const extraSegments = Math.max(0, perRun.segments - segmentsByRule(inputs, inputs.runSpansS));
  const paces = PACES.map((spansS) => {
    const segments = segmentsByRule(inputs, spansS) + extraSegments;
    const openRuns = SPANS_PER_SECOND / spansS;
    const putsS = runsS * (perRun.puts - perRun.segments + segments);
    return { openRuns, openMiB: (openRuns / builders) * inputs.openRunMiB, putsS };
  });
  return {
    ...{ runsS, builders, bytesS, brokerCores, paces },
    receivers: Math.ceil(receiver.mainS / LOAD),
    partitions: PARTITIONS_PER_BUILDER * builders,
    brokers: Math.max(3, Math.ceil(Math.max(...Object.values(perBroker)))),
    brokersBy: Object.entries(perBroker).sort((a, b) => b[1] - a[1])[0]?.[0] ?? '',
    vcpus: { receivers: receiver.cpuS / LOAD, builders: builder.cpuS / LOAD, postgres: postgresS / LOAD },
    listsS: runsS * perRun.lists,
    getsS: runsS * perRun.gets,
    deletesS: runsS * perRun.deletes,
    transactionsS: runsS * perRun.transactions,
    walBytesS: runsS * perRun.walBytes,
    keptBytesDay: SPANS_PER_SECOND * inputs.keptBytesPerSpan * 86_400,
  };
}

/** How many segments a run's log is put into the bucket in, by their size and by their time. */
function segmentsByRule({ logBytesPerRun, spansPerRun }: PaperInputs, spansS: number): number {
  return Math.max(Math.ceil(logBytesPerRun / SEGMENT_BYTES), Math.ceil(spansPerRun / spansS / SEGMENT_S));
}

function needsTable(inputs: PaperInputs, need: Needs): string {
  const { receiver, builder, exportCpuS, perRun, spansPerRun } = inputs;
  const [fast, slow] = need.paces;
  const rows: Rows = [
    ['runs', `1,000,000 ÷ ${spansPerRun.toLocaleString('en')} spans a run`, `${number(need.runsS)} a second`],
    [
      'receivers',
      `${seconds(receiver.mainS)} of the first thread a second, 60 % of a core each`,
      `${need.receivers} processes, ${number(need.vcpus.receivers)} vCPUs`,
    ],
    [
      'builders',
      `${seconds(builder.mainS)} of the first thread, ${seconds(builder.cpuS)} of all, 60 %`,
      `${need.builders} processes, ${number(need.vcpus.builders)} vCPUs`,
    ],
    ...(exportCpuS === null
      ? []
      : [
          [
            'and with a destination',
            `${seconds(exportCpuS)} more, in the first thread`,
            `${number(Math.ceil(exportCpuS / LOAD))} processes, ${number(exportCpuS / LOAD)} vCPUs more`,
          ] as const,
        ]),
    ['partitions of each topic', `${PARTITIONS_PER_BUILDER} a builder`, number(need.partitions)],
    ['messages', `${number(inputs.messagesPerRun)} a run`, `${number(need.runsS * inputs.messagesPerRun)} a second`],
    [
      'into Kafka',
      `${number(inputs.kafkaBytesPerSpan)} bytes a span, not compressed`,
      `${bytes(need.bytesS)}/s; with ${REPLICAS} replicas ${bytes(REPLICAS * need.bytesS)}/s to disks`,
    ],
    [
      'network of all brokers',
      'in: once, and twice for replicas; out: the same',
      `${bytes(REPLICAS * need.bytesS)}/s each way`,
    ],
    ['disks of Kafka', `${TOPIC_HOURS} h, ${REPLICAS} replicas`, bytes(REPLICAS * need.bytesS * TOPIC_HOURS * 3_600)],
    [
      'brokers',
      `${number(need.brokerCores)} cores busy; by ${need.brokersBy}`,
      `${need.brokers}, of ${BROKER.vcpus} vCPUs each`,
    ],
    [
      'network of builders',
      'from Kafka, and to the bucket',
      `${bytes(need.bytesS)}/s in, ${bytes(SPANS_PER_SECOND * inputs.putBytesPerSpan)}/s out`,
    ],
    [
      'writes to the bucket',
      `${decimal(perRun.puts)} a run of ${number(inputs.runSpansS)} spans/s, ${decimal(perRun.segments)} of them segments; a segment more in each ${SEGMENT_S} s that it is open`,
      `${number(fast?.putsS ?? 0)} a second where runs send ${number(PACES[0])} spans/s (${number(fast?.openRuns ?? 0)} open), ${number(slow?.putsS ?? 0)} where they send ${PACES[1]} (${number(slow?.openRuns ?? 0)} open)`,
    ],
    [
      'other requests',
      `${decimal(perRun.lists)} lists, ${decimal(perRun.gets)} reads, ${decimal(perRun.deletes)} removals a run`,
      `${number(need.listsS)}, ${number(need.getsS)}, ${number(need.deletesS)} a second`,
    ],
    [
      'bucket',
      `${number(inputs.keptBytesPerSpan)} bytes a span stay`,
      `${bytes(need.keptBytesDay)} a day, ${bytes(need.keptBytesDay * KEPT_DAYS)} in ${KEPT_DAYS} days`,
    ],
    [
      'PostgreSQL',
      `${decimal(perRun.transactions)} transactions and ${bytes(perRun.walBytes)} of its log a run`,
      `${number(need.transactionsS)} a second, ${bytes(need.walBytesS)}/s of log, ${decimal(need.vcpus.postgres)} vCPUs, ${number(need.runsS * 86_400 * KEPT_DAYS)} runs in ${KEPT_DAYS} days`,
    ],
  ];
  return markdownTable('What it needs:', ['', 'of what was measured', 'for 1,000,000 spans/s'], rows);
}

function moneyTable(need: Needs): string {
  const { vcpus } = need;
  const monthS = HOURS_PER_MONTH * 3_600;
  const cpu = (count: number) => count * PRICE.vcpuHour * HOURS_PER_MONTH;
  const zoneBytes = need.bytesS * (2 / 3 + (REPLICAS - 1) + 2 / 3);
  const [fast, slow] = need.paces;
  const puts = (each: number) => ((each + need.listsS) * monthS * PRICE.putsOfThousand) / 1_000;
  const perMonth: readonly (readonly [string, string, number])[] = [
    ['receivers', `${number(vcpus.receivers)} vCPUs`, cpu(vcpus.receivers)],
    ['builders', `${number(vcpus.builders)} vCPUs`, cpu(vcpus.builders)],
    ['brokers', `${need.brokers} × ${BROKER.vcpus} vCPUs`, cpu(need.brokers * BROKER.vcpus)],
    [
      'their disks',
      bytes(REPLICAS * need.bytesS * TOPIC_HOURS * 3_600),
      ((REPLICAS * need.bytesS * TOPIC_HOURS * 3_600) / 1e9) * PRICE.diskGbMonth,
    ],
    ['PostgreSQL', `${Math.ceil(vcpus.postgres)} vCPUs, twice`, cpu(2 * Math.ceil(vcpus.postgres))],
    [
      'traffic between three zones',
      `${bytes(zoneBytes)}/s: 2/3 of what is written, ${REPLICAS - 1} replicas, 2/3 of what is read`,
      (zoneBytes * monthS * PRICE.zoneGb) / 1e9,
    ],
    [
      'writes and lists of the bucket',
      `${number(fast?.putsS ?? 0)} and ${number(need.listsS)} a second`,
      puts(fast?.putsS ?? 0),
    ],
    ['reads of the bucket', `${number(need.getsS)} a second`, (need.getsS * monthS * PRICE.getsOfThousand) / 1_000],
    [
      `${KEPT_DAYS} days in the bucket`,
      bytes(need.keptBytesDay * KEPT_DAYS),
      ((need.keptBytesDay * KEPT_DAYS) / 1e9) * PRICE.gbMonth,
    ],
  ];
  const total = perMonth.reduce((sum, [, , dollars]) => sum + dollars, 0);
  const rows: Rows = [
    ...perMonth.map(([what, of, dollars]) => [what, of, money(dollars)] as const),
    [
      '**all of it**',
      `${(total / ((SPANS_PER_SECOND * monthS) / 1e6)).toFixed(3)} dollars for a million spans`,
      `**${money(total)}**`,
    ],
    [
      `instead, where runs send ${PACES[1]} spans/s`,
      `${number(slow?.putsS ?? 0)} writes a second`,
      `${money(puts(slow?.putsS ?? 0))} for writes and lists`,
    ],
  ];
  return markdownTable('What it costs:', ['', 'of', 'a month, US dollars'], rows);
}

function limitsTable(inputs: PaperInputs, need: Needs): string {
  const { receiver, builder, perRun, spansPerRun, kafkaBytesPerSpan, kafkaS, takeOver, openRunMiB } = inputs;
  const carries = (spansS: number) => `${number(spansS)} spans/s`;
  const [, slow] = need.paces;
  const lostS = takeOver.endedS + REREAD_S;
  const writesPerRun = (slow?.putsS ?? 0) / need.runsS + perRun.deletes;
  const rows: Rows = [
    [
      'a receiver’s first thread',
      carries(1e6 / receiver.mainS),
      'answers take longer, then 503',
      'more receivers: they share nothing',
    ],
    [
      'a builder’s first thread',
      carries(1e6 / builder.mainS),
      'the lag of its partitions grows',
      'more builders, up to one a partition',
    ],
    [
      'a partition',
      `${carries(1e6 / builder.mainS)}, as one builder has all of it`,
      'lag of one partition grows',
      'none for one run: it is not split, and a run of more than that waits; more partitions for many runs',
    ],
    [
      'cores of a broker',
      carries((BROKER.vcpus * LOAD * 1e6) / (REPLICAS * kafkaS)),
      'produce takes longer, then 503',
      'more brokers',
    ],
    [
      'disk of a broker',
      carries((BROKER.diskBytesS * LOAD) / (REPLICAS * kafkaBytesPerSpan)),
      'the same',
      'more brokers, or `compression.type` of the topics',
    ],
    [
      'network of a broker',
      carries((BROKER.networkBytesS * LOAD) / (REPLICAS * kafkaBytesPerSpan)),
      'the same',
      'more brokers',
    ],
    [
      'partitions of a broker',
      `${number(BROKER.partitionReplicas)} replicas; here ${number((2 * REPLICAS * need.partitions) / need.brokers)} each`,
      'slow starts and elections',
      'far off',
    ],
    [
      'commits of PostgreSQL',
      carries((POSTGRES_COMMITS_S / perRun.transactions) * spansPerRun),
      'runs end late, then offsets wait',
      'it is one server: fewer rows a run, or a second system',
    ],
    [
      'connections of PostgreSQL',
      `${number(POSTGRES_CONNECTIONS)}: ${number(POSTGRES_CONNECTIONS / CONNECTIONS_PER_PROCESS)} builders, ${carries(((POSTGRES_CONNECTIONS / CONNECTIONS_PER_PROCESS) * LOAD * 1e6) / builder.mainS)}; here ${number(CONNECTIONS_PER_PROCESS * need.builders)}`,
      'builders do not start',
      'a pooler before it',
    ],
    [
      'writes of the bucket',
      `${number(BUCKET.writesS)} a second of one partition of its keys: ${carries((BUCKET.writesS / (perRun.puts + perRun.deletes)) * spansPerRun)} of runs of ${number(inputs.runSpansS)} spans/s, ${carries((BUCKET.writesS / writesPerRun) * spansPerRun)} of runs of ${PACES[1]} spans/s`,
      '503 of the bucket, offsets wait',
      'keys begin with random trace ids, so the provider can cut them; larger and later segments',
    ],
    [
      'reads of the bucket',
      `${number(BUCKET.readsS)} a second; here ${number(need.getsS)}, and after a take-over every segment of the open runs of its partitions`,
      'take-overs take longer',
      'more builders have fewer open runs each',
    ],
    [
      'memory for open runs',
      `${decimal(openRunMiB)} MiB each; ${number((slow?.openRuns ?? 0) / need.builders)} a builder at ${PACES[1]} spans/s: ${number(slow?.openMiB ?? 0)} MiB`,
      '`--max-memory` drops runs from memory, which are read again',
      'more builders',
    ],
    [
      'rebalances of the group',
      `${seconds(takeOver.killedS)} from a kill to new owners, ${seconds(takeOver.caughtUpS)} until they have caught up; with each that comes or goes, all of ${need.builders} members stop for up to ${seconds(takeOver.endedS)} and read up to ${REREAD_S} s again`,
      'lag jumps whenever a member comes or goes',
      `at ${LOAD * 100} % load they have caught up after ${number((lostS * LOAD) / (1 - LOAD))} s more: roll-outs one by one, no oftener`,
    ],
  ];
  return markdownTable('Where each part gives way:', ['part', 'one carries', 'what is seen', 'then'], rows);
}

const HEADING = '### On paper: 1,000,000 spans/s';
const ASSUMPTIONS = `Assumed, not measured: a vCPU is worth a core of this machine; no part is busier than ${LOAD * 100} %; a broker of ${BROKER.vcpus} vCPUs takes ${bytes(BROKER.networkBytesS)}/s of network each way and ${bytes(BROKER.diskBytesS)}/s of disk; PostgreSQL commits ${number(POSTGRES_COMMITS_S)} a second; a partition of a bucket's keys takes ${number(BUCKET.writesS)} writes and removals and ${number(BUCKET.readsS)} reads a second, as S3's documentation says. PostgreSQL's CPU is that of a server that does not wait for its disk. Prices are AWS's list prices in us-east-1 on demand, mid-2026: ${PRICE.vcpuHour} a vCPU-hour (m7g), S3 ${PRICE.putsOfThousand} for 1,000 writes or lists, ${PRICE.getsOfThousand} for 1,000 reads, ${PRICE.gbMonth} a GB-month beyond 500 TB, gp3 ${PRICE.diskGbMonth} a GB-month, ${PRICE.zoneGb} a GB from zone to zone. Nobody has run this.`;

type Rows = readonly (readonly string[])[];

/** Rounded to three digits, as nothing here is known better. */
function number(value: number): string {
  return Number(value.toPrecision(3)).toLocaleString('en', { maximumFractionDigits: value < 10 ? 1 : 0 });
}

function decimal(value: number): string {
  return value.toFixed(1);
}

function seconds(value: number): string {
  return `${value.toFixed(1)} s`;
}

function money(dollars: number): string {
  return number(dollars);
}

function bytes(value: number): string {
  for (const [unit, size] of [
    ['PB', 1e15],
    ['TB', 1e12],
    ['GB', 1e9],
    ['MB', 1e6],
    ['KB', 1e3],
  ] as const) {
    if (value >= size) return `${Number((value / size).toPrecision(3))} ${unit}`;
  }
  return `${value.toFixed(0)} bytes`;
}
