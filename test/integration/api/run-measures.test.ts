import { appendFileSync, copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { RunMeasures } from '../../../src/api/run-measures.js';
import { silentLogger } from '../../../src/core/logger.js';
import { RecordLogFiles } from '../../../src/log/record-log-files.js';
import type { TraceId } from '../../../src/record/telemetry-record.js';
import { Redactor } from '../../../src/redaction/redactor.js';
import { RunState } from '../../../src/run/open-run.js';
import { formatRun } from '../../../src/run/run-document.js';
import { RUN_TRACKER_DEFAULTS } from '../../../src/run/run-tracker-config.js';
import type { RunSummary } from '../../../src/run/verdict.js';
import type { State } from '../../../src/storage/state.js';
import { openFreshState } from '../../fake/fresh-state.js';
import { queryFolder } from '../../fake/query-folder.js';
import { sampleFolder, sampleLines } from '../../fake/sample-run.js';
import { until } from '../../tool/until.js';

const SAMPLE = 'build-mixed';
/** Long after every command has ended. */
const LONG_AFTER_MS = 10_000_000;

describe('measures of runs', () => {
  let remove: () => void;
  let dataFolder: string;
  let traceId: TraceId;
  let log: string;
  let state: State;
  let readCount: number;
  /** Offsets from which the log was read. */
  let readFrom: (number | undefined)[];
  let reader: RecordLogFiles;

  beforeEach(async () => {
    const folder = queryFolder([SAMPLE], (remover) => {
      remove = remover;
    });
    dataFolder = folder.dataFolder;
    [traceId] = folder.traceIds as [TraceId];
    log = join(dataFolder, 'runs', traceId, 'telemetry.jsonl');
    copyFileSync(join(sampleFolder(SAMPLE), 'otel.jsonl'), log);
    state = await openFreshState(join(dataFolder, 'state.db'));
    readCount = 0;
    readFrom = [];
    const files = new RecordLogFiles(dataFolder, () => {});
    reader = Object.assign(Object.create(files), {
      read: (...of: Parameters<RecordLogFiles['read']>) => {
        readCount += 1;
        readFrom.push(of[1].fromOffset);
        return files.read(...of);
      },
    });
  });
  afterEach(async () => {
    await state.close();
    remove();
  });

  /** What the run model makes of the log as it is now. */
  async function judged(runState: RunSummary['state']): Promise<RunSummary> {
    const files = new RecordLogFiles(dataFolder, () => {});
    const model = new RunState(RUN_TRACKER_DEFAULTS);
    const logBytes = await files.lengthBytes(traceId);
    for await (const chunk of files.read(traceId, { fromOffset: 0, toOffset: logBytes })) model.add(chunk, 0);
    const { invocations } = model.judge(LONG_AFTER_MS);
    return { traceId, firstSeenUnixMs: 1, lastSeenUnixMs: 2, state: runState, logBytes, invocations };
  }

  async function save(run: RunSummary): Promise<RunSummary> {
    const { firstSeenUnixMs, lastSeenUnixMs, logBytes } = run;
    const row = { traceId, firstSeenUnixMs, lastSeenUnixMs, state: run.state, logBytes, parquetBytes: logBytes };
    await state.runs.save([{ ...row, summary: formatRun(run) }]);
    return run;
  }

  const open = (live?: RunSummary) =>
    new RunMeasures({ store: state.measures, tracker: { find: async () => live }, reader, logger: silentLogger });
  const stepsOf = ({ invocations }: RunSummary) => [
    { invocations: invocations.map((one) => ({ ...one, traceId, isSaved: true })) },
  ];

  it('are read from the record log once: further readers, also of a next start, get the same without it', async () => {
    const run = await save(await judged('finished'));
    const first = open();
    const live = open(run);
    const [one, other] = await Promise.all([first.ofSteps(stepsOf(run)), first.ofSteps(stepsOf(run))]);
    expect(readCount).toBe(1);
    expect(one[0]?.command.nodes.length).toBeGreaterThan(10);
    expect(other).toEqual(one);
    rmSync(log);
    const [again] = await first.ofSteps(stepsOf(run));
    expect(again).toEqual(one[0]);
    // From page to page of one run they are not unpacked again.
    expect((await first.ofSteps(stepsOf(run)))[0]?.command).toBe(again?.command);
    expect(await live.ofSteps(stepsOf(run))).toEqual(one);
    expect(readCount).toBe(1);
  });

  it('show a redacted text the same way from the log and from what was stored, at each level', async () => {
    const run = await save(await judged('finished'));
    for (const level of ['literals', 'statements', 'off'] as const) {
      const live = { ...run, state: 'open' as const };
      await save(live);
      const fromLog = new Redactor(level);
      const [read] = await open(live).ofSteps(stepsOf(run), fromLog);
      await save(run);
      await open().ofSteps(stepsOf(run));
      const fromStored = new Redactor(level);
      const before = readCount;
      const [stored] = await open().ofSteps(stepsOf(run), fromStored);
      expect(readCount).toBe(before);
      const textsOf = (measured: typeof read) =>
        (measured?.command.nodes ?? []).flatMap(({ message, diffTable }) => [message ?? '', diffTable ?? '']);
      const texts = textsOf(read);
      expect(texts.some((text) => text.includes('nonexistent_column'))).toBe(true);
      expect(textsOf(stored)).toEqual(texts);
      expect(texts.map((text) => fromStored.text(text))).toEqual(texts.map((text) => fromLog.text(text)));
      expect(texts.map((text) => fromStored.diffTable(text))).toEqual(texts.map((text) => fromLog.diffTable(text)));
    }
  });

  it('have the log records beside them, redacted the same way from the log and from what was stored', async () => {
    const run = await save(await judged('finished'));
    const live = { ...run, state: 'open' as const };
    for (const level of ['literals', 'off'] as const) {
      await save(live);
      const fromLog = new Redactor(level);
      const [read] = await open(live).logsOf(stepsOf(run), fromLog);
      await save(run);
      await open().ofSteps(stepsOf(run));
      const before = readCount;
      const fromStored = new Redactor(level);
      const [stored] = await open().logsOf(stepsOf(run), fromStored);
      expect(readCount).toBe(before);
      expect(stored).toEqual(read);
      const texts = stored?.texts ?? [];
      expect(texts).toHaveLength(sampleLines(SAMPLE).filter((line) => line.includes('"LogRecord"')).length);
      const times = [...(stored?.timesMs ?? [])];
      expect(times).toEqual(times.toSorted((a, b) => a - b));
      expect(texts.map((text) => fromStored.text(text))).toEqual(texts.map((text) => fromLog.text(text)));
    }
  });

  it('are measured again when late records have changed the run', async () => {
    const run = await save(await judged('finished'));
    const measures = open();
    const [before] = await measures.ofSteps(stepsOf(run));
    const late = sampleLines(SAMPLE).filter((line) => line.includes('LogMessage'));
    appendFileSync(log, `${late[0]}\n`.replace(/"severity_number":\d+/, '"severity_number":17'));
    const later = await save(await judged('finished'));
    expect(later.logBytes).toBeGreaterThan(run.logBytes);
    const [after] = await measures.ofSteps(stepsOf(later));
    expect(after?.command.messages.length).toBe((before?.command.messages.length ?? 0) + 1);
    expect(await open().ofSteps(stepsOf(later))).toEqual([after]);
    expect(readCount).toBe(2);
  });

  it('of a run under way are read on from where they were read to, and not stored before its end', async () => {
    const lines = sampleLines(SAMPLE);
    writeFileSync(log, `${lines.slice(0, -40).join('\n')}\n`);
    let run = await save({ ...(await judged('open')), state: 'open' });
    const live = new RunMeasures({
      store: state.measures,
      tracker: { find: async () => run },
      reader,
      logger: silentLogger,
    });
    const [before] = await live.ofSteps(stepsOf(run));
    const again = await live.ofSteps(stepsOf(run));
    expect(again).toEqual([before]);
    appendFileSync(log, `${lines.slice(-40).join('\n')}\n`);
    const readTo = run.logBytes;
    run = await save({ ...(await judged('open')), state: 'open' });
    const inTurns = await Promise.all([live.ofSteps(stepsOf(run)), live.ofSteps(stepsOf(run))]);
    expect(readFrom).toEqual([0, readTo, readTo, run.logBytes]);
    expect((await state.measures.find(traceId))?.content).toBeNull();
    const whole = await open(run).ofSteps(stepsOf(run));
    expect(inTurns).toEqual([whole, whole]);
    expect(whole).not.toEqual([before]);
    const over = await save({ ...run, state: 'finished' });
    expect(await live.ofSteps(stepsOf(over))).toEqual(whole);
    expect(readFrom).toEqual([0, readTo, readTo, run.logBytes, 0, run.logBytes]);
    expect((await state.measures.find(traceId))?.content).not.toBeNull();
  });

  it('are measured as a run finishes, once somebody has asked for any', async () => {
    const run = await save(await judged('finished'));
    const measures = open();
    await measures.onRunEvent({ type: 'finished', run });
    expect(readCount).toBe(0);
    await measures.ofSteps([]);
    await measures.onRunEvent({ type: 'finished', run });
    await until('the measures of the run', async () => (await state.measures.find(traceId))?.content !== null);
    await measures.shutdown();
    await measures.ofSteps(stepsOf(run));
    expect(readCount).toBe(1);
  });

  it('are measured as a run finishes where somebody has asked before the last restart', async () => {
    const run = await save(await judged('finished'));
    await open().ofSteps(stepsOf(run));
    const next = open();
    await next.start();
    const later = await save({ ...run, lastSeenUnixMs: 3 });
    expect((await state.measures.find(traceId))?.content).toBeNull();
    await next.onRunEvent({ type: 'finished', run: later });
    await until('the measures of the run', async () => (await state.measures.find(traceId))?.content !== null);
    await next.shutdown();
  });

  it('are not stored of a log that is gone, and read again where another version stored them', async () => {
    const run = await save(await judged('finished'));
    await state.measures.save(traceId, formatRun(run), Buffer.from('of another version'), []);
    expect(await open().ofSteps(stepsOf(run))).toHaveLength(1);
    expect(readCount).toBe(1);
    await save({ ...run, lastSeenUnixMs: 3 });
    rmSync(log);
    await open()
      .ofSteps(stepsOf(run))
      .catch(() => undefined);
    expect((await state.measures.find(traceId))?.content).toBeNull();
  });
});
