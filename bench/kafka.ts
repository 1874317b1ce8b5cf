import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import type { BridgeProcess } from '../test/tool/bridge-process.js';
import { until } from '../test/tool/until.js';
import { type ProcessCost, paper } from './kafka-paper.js';
import { type BucketRequests, type Deployment, KafkaSystem, type Sent, send, type Topics } from './kafka-system.js';
import { cpuTimeMs, mainThreadCpuTimeMs, residentPeakMiB } from './measured-process.js';
import { openPeers } from './peer-programs.js';
import { type Goal, markdownTable, saveSection } from './results.js';
import { formatSpread, spreadOf } from './spread.js';
import { recordCounts, requestFolders, WORKLOADS } from './workloads.js';

/*
 * What receivers and builders take for real spans that travel through Kafka, on one machine: a receiver fills two topics,
 * builders empty them, builders are killed. README.md says what is counted, and kafka-paper.ts multiplies it.
 */

const PHASES = ['load', 'live', 'take-over'];
const { values } = parseArgs({
  options: {
    spans: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '1' },
    tries: { type: 'string', default: '5' },
    phases: { type: 'string', default: PHASES.join(',') },
    dist: { type: 'string', default: 'dist' },
    save: { type: 'boolean', default: false },
  },
});
const spanCount = Number(values.spans);
const rounds = Number(values.rounds);
const phases = values.phases.split(',');
const unknown = phases.find((phase) => !PHASES.includes(phase));
if (unknown !== undefined) throw new Error(`there is no phase ${unknown}; there are ${PHASES.join(' and ')}`);

/** One filling of topics: how many partitions they have, and how many runs are sent side by side. */
interface Filling {
  readonly partitions: number;
  readonly openRuns: number;
  /** How often they are emptied, each time by another group: with how many builders. */
  readonly builds: readonly { readonly builders: number; readonly isExporting?: boolean }[];
}

/** Runs are sent side by side so many at a time. */
const OPEN_RUNS = 4;
const FILLINGS: readonly Filling[] = [
  { partitions: 1, openRuns: OPEN_RUNS, builds: [{ builders: 1 }, { builders: 1, isExporting: true }] },
  { partitions: 2, openRuns: OPEN_RUNS, builds: [{ builders: 1 }, { builders: 2 }] },
  { partitions: 4, openRuns: OPEN_RUNS, builds: [{ builders: 1 }, { builders: 2 }, { builders: 4 }] },
];
/** While runs come in, at a pace that one builder keeps up with: each of a few quickly, and each of many slowly. */
const LIVE = { partitions: 4, spansPerSecond: 3_000, openRuns: [8, 64] };
/** Of take-overs: two builders, and runs that are sent as slowly as engines do that wait for a warehouse. */
const TAKE_OVER = { partitions: 4, builders: 2, runs: 8, spansPerSecond: 250, killAfterMs: 12_000 };
const LOOK_MS = 50;
/** Nothing here takes so long, in milliseconds. */
const PATIENCE_MS = 1_800_000;

/** What several processes took in one time. */
interface Cost extends ProcessCost {
  /** CPU seconds for a million spans. */
  readonly kafkaS: number;
  readonly spansS: number;
}

interface ReceiverFigures extends Cost {
  readonly p99Ms: number;
  readonly messagesPerRun: number;
  readonly bytesPerSpan: number;
}

interface BuildFigures extends Cost {
  readonly postgresS: number;
  readonly readS: number;
  readonly overS: number;
  /** For each run. */
  readonly requests: BucketRequests;
  readonly transactions: number;
  readonly walBytes: number;
  /** Of record logs. */
  readonly logBytesPerSpan: number;
  readonly keptBytesPerSpan: number;
  readonly putBytesPerSpan: number;
}

/** From the signal on, in seconds. */
interface TakeOver {
  /** Others have the partitions. */
  readonly claimedS: number;
  /** They have committed more than the process had. */
  readonly committedS: number;
  /** They have committed all that was in the partitions at the signal. */
  readonly caughtUpS: number;
}

openPeers(false);
const [workload] = WORKLOADS;
if (workload === undefined) throw new Error('there is no workload');
const folders = requestFolders(workload);
const counts = await recordCounts(workload);
const failures: string[] = [];
/** Records in the buckets, and those that there have to be. */
const records = { found: 0, expected: 0 };
const received = new Map<string, ReceiverFigures[]>();
const built = new Map<string, BuildFigures[]>();
const takeOvers: Record<'SIGKILL' | 'SIGTERM', TakeOver[]> = { SIGKILL: [], SIGTERM: [] };

const system = await KafkaSystem.start(values.dist);
try {
  for (let round = 0; round < rounds; round += 1) {
    if (phases.includes('load')) for (const filling of FILLINGS) await fillAndBuild(filling, round);
    if (phases.includes('live')) for (const openRuns of LIVE.openRuns) await buildLive(openRuns, round);
    if (phases.includes('take-over')) await takeOver(round);
  }
} finally {
  await system.remove();
}
report();

async function fillAndBuild({ partitions, openRuns, builds }: Filling, round: number): Promise<void> {
  const name = `r${round}_p${partitions}_o${openRuns}`;
  const topics = await system.createTopics(name, partitions);
  const { sent, figures } = await receive(topics, openRuns);
  note(received, `${partitions} | ${openRuns}`, figures);
  for (const { builders, isExporting = false } of builds) {
    const key = `${partitions} | ${openRuns} | ${builders}${isExporting ? ', exporting' : ''}`;
    const deployment = await system.createDeployment(
      `${name}_b${builders}${isExporting ? 'x' : ''}`,
      topics,
      isExporting,
    );
    try {
      note(built, key, await build(deployment, builders, async () => sent.spans));
      await check(deployment, sent.spans, key);
    } finally {
      await deployment.remove();
    }
  }
}

/** A receiver alone, which is sent everything as fast as it answers. */
async function receive(topics: Topics, connections: number): Promise<{ sent: Sent; figures: ReceiverFigures }> {
  const receiver = await system.startReceiver(topics);
  try {
    const before = { ...threadTimes([receiver]), kafka: system.cpu.kafka };
    const sent = await send(receiver.otlpUrl, folders, { spanCount, connections });
    failures.push(...sent.failures);
    const after = threadTimes([receiver]);
    const text = await (await fetch(`${receiver.webUrl}/metrics`)).text();
    const written = (what: string) =>
      [...text.matchAll(new RegExp(`^run_bridge_journal_written_${what}_total\\{.*\\} (\\S+)$`, 'gm'))].reduce(
        (sum, [, value]) => sum + Number(value),
        0,
      );
    const figures = {
      ...perMillion({ cpuS: after.cpuS - before.cpuS, mainS: after.mainS - before.mainS }, sent.spans),
      ...{ peakMiB: after.peakMiB, spansS: sent.spans / sent.secs, p99Ms: sent.p99Ms },
      kafkaS: millions(system.cpu.kafka - before.kafka, sent.spans),
      messagesPerRun: written('messages') / runsOf(sent.spans),
      bytesPerSpan: written('bytes') / sent.spans,
    };
    return { sent, figures };
  } finally {
    await receiver.remove();
  }
}

/** One builder, which reads what a receiver writes at the time. */
async function buildLive(openRuns: number, round: number): Promise<void> {
  const name = `r${round}_live_o${openRuns}`;
  const topics = await system.createTopics(name, LIVE.partitions);
  const deployment = await system.createDeployment(name, topics);
  const receiver = await system.startReceiver(topics);
  let spans = 0;
  try {
    const fill = async () => {
      for (const sent of await sendSideBySide(receiver, openRuns, LIVE.spansPerSecond / openRuns, spanCount)) {
        spans += sent.spans;
      }
      return spans;
    };
    const key = liveKey(openRuns);
    note(built, key, await build(deployment, 1, fill));
    await check(deployment, spans, key);
  } finally {
    await receiver.remove();
    await deployment.remove();
  }
}

function liveKey(openRuns: number): string {
  return `${LIVE.partitions} | ${openRuns} | 1, live`;
}

/** Sends so many runs at a time, each at a pace of its own. @param count of spans, of all of them */
async function sendSideBySide(
  { otlpUrl }: BridgeProcess,
  openRuns: number,
  spansPerSecond: number,
  count: number,
): Promise<readonly Sent[]> {
  const one = { spanCount: Math.ceil(count / openRuns), connections: 1, spansPerSecond };
  const sent = await Promise.all(Array.from({ length: openRuns }, () => send(otlpUrl, folders, one)));
  for (const each of sent) failures.push(...each.failures);
  return sent;
}

/** Builders of what is in the topics, and what `fill` sends. Their start is not counted. @param fill resolves with the number of spans */
async function build(deployment: Deployment, builderCount: number, fill: () => Promise<number>): Promise<BuildFigures> {
  const { requestLogBytes } = system;
  const builders = await deployment.start(builderCount);
  const before = { ...threadTimes(builders), ...system.cpu, ...(await deployment.databaseWork()) };
  const startedMs = performance.now();
  const secondsSince = () => (performance.now() - startedMs) / 1_000;
  const spans = await fill();
  await deployment.read(PATIENCE_MS);
  const readS = secondsSince();
  await deployment.over(PATIENCE_MS);
  const overS = secondsSince();
  const taken = threadTimes(builders);
  const servers = system.cpu;
  const all = system.requestsSince(requestLogBytes);
  const work = await deployment.databaseWork();
  const runs = runsOf(spans);
  const { fileBytes, logBytes } = await deployment.storedBytes();
  const perRun = (count: number) => count / runs;
  return {
    ...perMillion({ cpuS: taken.cpuS - before.cpuS, mainS: taken.mainS - before.mainS }, spans),
    ...{ peakMiB: taken.peakMiB, readS, overS, spansS: spans / overS },
    kafkaS: millions(servers.kafka - before.kafka, spans),
    postgresS: millions(servers.postgres - before.postgres, spans),
    requests: {
      ...{ segments: perRun(all.segments), puts: perRun(all.puts), gets: perRun(all.gets), lists: perRun(all.lists) },
      ...{ deletes: perRun(all.deletes), segmentBytes: perRun(all.segmentBytes) },
    },
    transactions: perRun(work.transactions - before.transactions),
    walBytes: perRun(work.walBytes - before.walBytes),
    logBytesPerSpan: logBytes / spans,
    keptBytesPerSpan: fileBytes / spans,
    putBytesPerSpan: (fileBytes + all.segmentBytes) / spans,
  };
}

/** Every record that was acknowledged has to be in the bucket once, and every run at its end. */
async function check(deployment: Deployment, spans: number, where: string): Promise<void> {
  const runs = runsOf(spans);
  const lines = await deployment.logLineCounts();
  const found = lines.reduce((sum, count) => sum + count, 0);
  const expected = runs * (2 * counts.spans + counts.logRecords);
  records.found += found;
  records.expected += expected;
  if (found !== expected) failures.push(`${where}: ${found} of ${expected} records in the bucket`);
  const ended = await deployment.count(`runs where state = 'finished' and log_bytes = parquet_bytes`);
  if (ended !== runs || lines.length !== runs) failures.push(`${where}: ${ended} of ${runs} runs at their end`);
}

/** Builders are killed, and ended in order, in turns, while runs come in. */
async function takeOver(round: number): Promise<void> {
  const topics = await system.createTopics(`r${round}_take_over`, TAKE_OVER.partitions);
  const deployment = await system.createDeployment(`r${round}_take_over`, topics);
  const receiver = await system.startReceiver(topics);
  let spans = 0;
  try {
    const builders = [...(await deployment.start(TAKE_OVER.builders))];
    for (let attempt = 0; attempt < 2 * Number(values.tries); attempt += 1) {
      const signal = attempt % 2 === 0 ? 'SIGKILL' : 'SIGTERM';
      const index = (attempt >> 1) % builders.length;
      const victim = builders[index];
      if (victim === undefined) throw new Error('there is no builder to be killed');
      await shared(deployment, builders);
      const { runs, spansPerSecond } = TAKE_OVER;
      const sending = sendSideBySide(receiver, runs, spansPerSecond, runs * counts.spans);
      await sleep(TAKE_OVER.killAfterMs);
      const found = await killed(deployment, victim, signal);
      takeOvers[signal].push(found);
      console.log(`${signal}: ${JSON.stringify(found)}`);
      for (const sent of await sending) spans += sent.spans;
      builders[index] = await deployment.restart(index);
    }
    await deployment.read(PATIENCE_MS);
    await deployment.over(PATIENCE_MS);
    await check(deployment, spans, 'take-over');
  } finally {
    await receiver.remove();
    await deployment.remove();
  }
}

/** Resolves when each of the builders has its share of the partitions, and nothing waits. */
async function shared(deployment: Deployment, builders: readonly BridgeProcess[]): Promise<void> {
  const share = TAKE_OVER.partitions / builders.length;
  const ids = await Promise.all(builders.map((builder) => deployment.processIdOf(builder)));
  const isShared = async () => {
    const partitions = await deployment.partitionsByProcess();
    return ids.every((id) => partitions.get(id)?.size === share);
  };
  await until('a share of the partitions for each builder', isShared, PATIENCE_MS);
  await deployment.read(PATIENCE_MS);
}

async function killed(deployment: Deployment, victim: BridgeProcess, signal: NodeJS.Signals): Promise<TakeOver> {
  const id = await deployment.processIdOf(victim);
  const lost = (await deployment.partitionsByProcess()).get(id) ?? new Set();
  const positions = async () => (await deployment.positions()).filter(({ partition }) => lost.has(partition));
  const atSignal = await positions();
  const startedMs = performance.now();
  const secondsSince = () => (performance.now() - startedMs) / 1_000;
  await victim.stop(signal);
  // What it has committed in ending is its own.
  const last = await positions();
  let claimedS: number | undefined;
  let committedS: number | undefined;
  return await until(
    'a take-over',
    async () => {
      await sleep(LOOK_MS);
      if (claimedS === undefined) {
        if (((await deployment.partitionsByProcess()).get(id)?.size ?? 0) > 0) return undefined;
        claimedS = secondsSince();
      }
      const now = await positions();
      if (now.some(({ committed }, at) => committed > (last[at]?.committed ?? 0))) committedS ??= secondsSince();
      if (committedS === undefined || now.some(({ committed }, at) => committed < (atSignal[at]?.end ?? 0)))
        return undefined;
      return { claimedS, committedS, caughtUpS: secondsSince() };
    },
    PATIENCE_MS,
  );
}

function report(): void {
  const parts = [
    `Copies of ${workload?.name}: ${counts.spans.toLocaleString('en')} spans and ${counts.logRecords.toLocaleString('en')} log records a run; ${spanCount.toLocaleString('en')} spans each time. Load, Kafka, PostgreSQL, the S3 server and what is measured share this machine: CPU seconds do not depend on that, spans/s do.`,
  ];
  if (received.size > 0) parts.push(receiverTable(), builderTable());
  if (takeOvers.SIGKILL.length > 0) parts.push(takeOverTable());
  const inputs = paperInputs();
  if (inputs !== undefined) parts.push(paper(inputs));
  const goal: Goal = {
    what: 'records in the bucket by those acknowledged',
    ...{ value: records.found / records.expected, atLeast: 1 },
    ...(failures.length > 0 && { failure: failures.join('; ') }),
  };
  saveSection('kafka', { text: parts.join('\n\n'), goals: [goal], rounds }, values.save);
  if (failures.length > 0) process.exitCode = 1;
}

function receiverTable(): string {
  const rows = [...received].map(([key, figures]) => {
    const of = spreadsOf(figures);
    const costs = [of(({ cpuS }) => cpuS, 1), of(({ mainS }) => mainS, 1), of(({ kafkaS }) => kafkaS, 1)];
    const speed = [of(({ peakMiB }) => peakMiB, 0), of(({ spansS }) => spansS, 0), of(({ p99Ms }) => p99Ms, 0)];
    return [key, ...costs, ...speed, of((one) => one.messagesPerRun, 1), of((one) => one.bytesPerSpan, 0)];
  });
  return markdownTable(
    'A receiver alone, CPU seconds for a million spans:',
    [
      'partitions',
      'runs at a time',
      'CPU',
      'its first thread',
      "Kafka's",
      'peak MiB',
      'spans/s',
      'p99 of answers, ms',
      'messages a run',
      'bytes a span',
    ],
    rows,
  );
}

function builderTable(): string {
  const rows = [...built].map(([key, figures]) => {
    const of = spreadsOf(figures);
    return [
      key,
      of(({ cpuS }) => cpuS, 1),
      of(({ mainS }) => mainS, 1),
      of(({ kafkaS }) => kafkaS, 1),
      of(({ postgresS }) => postgresS, 1),
      of(({ peakMiB }) => peakMiB, 0),
      of(({ spansS }) => spansS, 0),
      `${of(({ readS }) => readS, 0)} / ${of(({ overS }) => overS, 0)}`,
      `${of(({ requests }) => requests.puts, 1)} (${of(({ requests }) => requests.segments, 1)})`,
      [
        of(({ requests }) => requests.gets, 1),
        of(({ requests }) => requests.lists, 1),
        of(({ requests }) => requests.deletes, 1),
      ].join(' / '),
      of((one) => one.putBytesPerSpan, 0),
      `${of(({ transactions }) => transactions, 0)} / ${of(({ walBytes }) => walBytes / 1_024, 0)}`,
    ];
  });
  const columns = [
    'partitions',
    'runs at a time',
    'builders',
    'CPU',
    'first threads',
    "Kafka's",
    "PostgreSQL's",
    'peak MiB of one',
    'spans/s',
  ];
  const more = [
    's until read / over',
    'writes a run (segments)',
    'reads / lists / removals',
    'bytes a span to the bucket',
    'transactions / KiB of WAL a run',
  ];
  return markdownTable(
    'Builders of all that is in the topics, CPU seconds of all of them for a million spans:',
    [...columns, ...more],
    rows,
  );
}

function takeOverTable(): string {
  const rows = Object.entries(takeOvers).map(([signal, found]) => {
    const of = spreadsOf(found);
    const name = signal === 'SIGKILL' ? 'killed' : 'ended in order';
    return [
      name,
      String(found.length),
      of((one) => one.claimedS, 1),
      of((one) => one.committedS, 1),
      of((one) => one.caughtUpS, 1),
    ];
  });
  const { partitions, runs, spansPerSecond } = TAKE_OVER;
  return markdownTable(
    `Take-overs of one of two builders, ${partitions} partitions, ${runs} runs at ${spansPerSecond} spans/s each; seconds from the signal, median (smallest–largest):`,
    [
      'builder',
      'tries',
      'the other has the partitions',
      'and has committed more',
      'and all that was there at the signal',
    ],
    rows,
  );
}

/** What is multiplied on paper: of builders that keep up with what comes in. `undefined` where a phase was left out. */
function paperInputs(): Parameters<typeof paper>[0] | undefined {
  const receiver = received.get(`1 | ${OPEN_RUNS}`);
  const atOnce = built.get(`1 | ${OPEN_RUNS} | 1`);
  const exporting = built.get(`1 | ${OPEN_RUNS} | 1, exporting`);
  const [fewRuns = 0, manyRuns = 0] = LIVE.openRuns;
  const [builder, many] = [fewRuns, manyRuns].map((runs) => built.get(liveKey(runs)));
  if (receiver === undefined || atOnce === undefined || builder === undefined || many === undefined) return undefined;
  if (takeOvers.SIGKILL.length === 0) return undefined;
  const claimedS = (one: TakeOver) => one.claimedS;
  const peak = (figures: readonly BuildFigures[]) => medianOf(figures, ({ peakMiB }) => peakMiB);
  return {
    ...{ receiver: costOf(receiver), builder: costOf(builder) },
    exportCpuS: exporting === undefined ? null : Math.max(0, costOf(exporting).cpuS - costOf(atOnce).cpuS),
    kafkaS: medianOf(builder, ({ kafkaS }) => kafkaS),
    postgresS: medianOf(builder, ({ postgresS }) => postgresS),
    spansPerRun: counts.spans,
    messagesPerRun: medianOf(receiver, (one) => one.messagesPerRun),
    kafkaBytesPerSpan: medianOf(receiver, (one) => one.bytesPerSpan),
    perRun: {
      segments: medianOf(builder, ({ requests }) => requests.segments),
      puts: medianOf(builder, ({ requests }) => requests.puts),
      gets: medianOf(builder, ({ requests }) => requests.gets),
      lists: medianOf(builder, ({ requests }) => requests.lists),
      deletes: medianOf(builder, ({ requests }) => requests.deletes),
      transactions: medianOf(builder, ({ transactions }) => transactions),
      walBytes: medianOf(builder, ({ walBytes }) => walBytes),
    },
    keptBytesPerSpan: medianOf(builder, (one) => one.keptBytesPerSpan),
    putBytesPerSpan: medianOf(builder, (one) => one.putBytesPerSpan),
    logBytesPerRun: counts.spans * medianOf(builder, (one) => one.logBytesPerSpan),
    runSpansS: LIVE.spansPerSecond / fewRuns,
    openRunMiB: Math.max(0, (peak(many) - peak(builder)) / (manyRuns - fewRuns)),
    takeOver: {
      killedS: medianOf(takeOvers.SIGKILL, claimedS),
      endedS: medianOf(takeOvers.SIGTERM, claimedS),
      caughtUpS: medianOf(takeOvers.SIGKILL, (one) => one.caughtUpS),
    },
  };
}

function costOf(figures: readonly Cost[]): ProcessCost {
  const of = (value: (one: Cost) => number) => medianOf(figures, value);
  return { cpuS: of(({ cpuS }) => cpuS), mainS: of(({ mainS }) => mainS), peakMiB: of(({ peakMiB }) => peakMiB) };
}

/** Of all of them together, in seconds; the most memory of one. */
function threadTimes(processes: readonly BridgeProcess[]): ProcessCost {
  const pids = processes.map(({ child }) => child.pid ?? 0);
  const sum = (time: (pid: number) => number) => pids.reduce((total, pid) => total + time(pid), 0) / 1_000;
  return { cpuS: sum(cpuTimeMs), mainS: sum(mainThreadCpuTimeMs), peakMiB: Math.max(...pids.map(residentPeakMiB)) };
}

function perMillion({ cpuS, mainS }: Omit<ProcessCost, 'peakMiB'>, spans: number): Omit<ProcessCost, 'peakMiB'> {
  return { cpuS: millions(cpuS, spans), mainS: millions(mainS, spans) };
}

function millions(value: number, spans: number): number {
  return (value / spans) * 1e6;
}

function runsOf(spans: number): number {
  return spans / counts.spans;
}

function note<Figures>(all: Map<string, Figures[]>, key: string, figures: Figures): void {
  console.log(`${key}: ${JSON.stringify(figures)}`);
  all.set(key, [...(all.get(key) ?? []), figures]);
}

function medianOf<Figures>(all: readonly Figures[], value: (one: Figures) => number): number {
  return spreadOf(all.map(value)).median;
}

function spreadsOf<Figures>(all: readonly Figures[]): (value: (one: Figures) => number, digits: number) => string {
  return (value, digits) => formatSpread(spreadOf(all.map(value)), digits);
}
