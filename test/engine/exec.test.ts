import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { getPriority, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { OtlpReceiver } from '../fake/otlp-receiver.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { Engine, type EngineResult } from '../tool/engine.js';
import { generateProject } from '../tool/many-models.js';
import { traceIdsIn } from '../tool/trace-ids.js';
import { until } from '../tool/until.js';

const main = new URL('../../dist/main.js', import.meta.url).pathname;
const terminal = new URL('../tool/terminal.py', import.meta.url).pathname;
const OWN_FILE = ['--otel-file-name', 'otel.jsonl'];
const SLOW = ['build', '--select', '+slow_a', '+slow_b', ...OWN_FILE];

interface RunFile {
  readonly job: { readonly name: string } | null;
  readonly steps: readonly {
    readonly verdict: string;
    readonly status_message: string | null;
    readonly step: { readonly index: number } | null;
    readonly resource: { readonly attributes: Readonly<Record<string, unknown>> };
  }[];
}

describe('exec', () => {
  let engine: Engine;
  let dataFolder: string;

  beforeAll(() => {
    engine = Engine.up('core');
  });
  afterAll(() => engine.remove());
  beforeEach(() => {
    dataFolder = mkdtempSync(join(tmpdir(), 'run-bridge-exec-data-'));
    for (const made of ['logs', 'target', 'shop.duckdb']) {
      rmSync(join(engine.project, made), { recursive: true, force: true });
    }
  });
  afterEach(() => rmSync(dataFolder, { recursive: true, force: true }));

  const wrap = (...command: readonly string[]) => [process.execPath, main, 'exec', '--', ...command];
  const wrapAs = (job: string, ...command: readonly string[]) => [
    ...[process.execPath, main, 'exec', '--job', job, '--'],
    ...command,
  ];
  const exec = (
    command: readonly string[],
    env: Readonly<Record<string, string>> = {},
    onStart?: (child: ChildProcess) => void,
  ): Promise<EngineResult> => engine.runCommand(wrap(...command), { RUN_BRIDGE_DATA_DIR: dataFolder, ...env }, onStart);
  const logOf = (traceId: string) => readFileSync(join(dataFolder, 'runs', traceId, 'telemetry.jsonl'), 'utf8');
  const runOf = (traceId: string): RunFile =>
    JSON.parse(readFileSync(join(dataFolder, 'runs', traceId, 'run.json'), 'utf8'));
  const engines = () => readFileSync(join(engine.project, 'logs', 'otel.jsonl'), 'utf8');

  /** The one run's steps, once its record log is what the engine wrote. */
  function expectTheEnginesRecords(): RunFile['steps'] {
    const [traceId = '', ...others] = traceIdsIn(dataFolder);
    expect(others).toEqual([]);
    // Told by a word: a difference of two long texts takes minutes to show.
    expect(logOf(traceId) === engines() ? 'the same' : 'different').toBe('the same');
    expect(readdirSync(join(dataFolder, 'spool'))).toEqual([]);
    return runOf(traceId).steps;
  }

  it.each([
    ['as the user’s own file', ['dbt', 'build', '--exclude', 'tag:slow', ...OWN_FILE]],
    [
      'in a file of its own, which a script sees no more than the command',
      ['sh', '-c', 'dbt build --exclude tag:slow; code=$?; cp "$DBT_OTEL_FILE_NAME" logs/otel.jsonl; exit $code'],
    ],
    ['at trace level', ['dbt', 'build', '--exclude', 'tag:slow', '--log-level-file', 'trace', ...OWN_FILE]],
  ])('keeps just the JSONL of the engine: %s', async (_name, command) => {
    const { exitCode, output } = await exec(command);
    expect(exitCode, output).toBe(1);
    expect(output).not.toMatch(/run-bridge:/);
    expect(expectTheEnginesRecords()).toMatchObject([{ verdict: 'error', status_message: 'Executed with errors' }]);
  });

  it('tells a run that succeeds, whose job was named', async () => {
    const { exitCode } = await exec(['dbt', 'build', '--exclude', 'tag:slow', 'tag:bad', ...OWN_FILE], {
      RUN_BRIDGE_JOB: 'nightly',
    });
    expect(exitCode).toBe(0);
    expect(expectTheEnginesRecords()).toMatchObject([{ verdict: 'success' }]);
    expect(runOf(traceIdsIn(dataFolder)[0] ?? '').job?.name).toBe('nightly');
  });

  it.each(['warn', 'info'])('fills up from OTLP what the level filter %s keeps out of the file', async (level) => {
    await exec(['dbt', 'build', '--exclude', 'tag:slow', '--log-level-file', level, ...OWN_FILE]);
    const [traceId = ''] = traceIdsIn(dataFolder);
    expect(engines().includes('SpanEnd')).toBe(level === 'info');
    const lines = logOf(traceId).trimEnd().split('\n');
    for (const line of engines().trimEnd().split('\n')) expect(lines).toContain(line);
    expect(lines.filter((line) => line.includes('"SpanEnd"')).length).toBeGreaterThan(50);
    const logs = lines.map((line) => JSON.parse(line)).filter((record) => record.record_type === 'LogRecord');
    // In the file, what was said in a span that is filtered out stands under another one, or none.
    const keys = logs.map((log) => `${log.time_unix_nano} ${log.event_type} ${log.body}`);
    expect(new Set(keys).size).toBe(keys.length);
    expect(runOf(traceId).steps).toMatchObject([{ verdict: 'error' }]);
  });

  it('stops by --fail-fast as the engine does', async () => {
    const { exitCode } = await exec(['dbt', 'build', '--fail-fast', ...OWN_FILE]);
    expect(exitCode).toBe(1);
    const [traceId = ''] = traceIdsIn(dataFolder);
    expect(logOf(traceId).startsWith(engines()) ? 'the same' : 'different').toBe('the same');
    // Queries that are cancelled end while the engine does: what they say once its file is closed comes over OTLP alone.
    const [last = ''] = engines().trimEnd().split('\n').slice(-1);
    expect(last).toContain('"event_type":"v1.public.events.fusion.process.Process"');
    const late = logOf(traceId).slice(engines().length).split('\n').slice(0, -1);
    expect(late.filter((line) => engines().includes(line))).toEqual([]);
    expect(late.length).toBeLessThan(10);
    const [step] = runOf(traceId).steps;
    expect(step).toMatchObject({ verdict: 'error', status_message: expect.stringMatching(/fail-fast/) });
  });

  it('keeps several commands of a script apart, each a run of its own', async () => {
    const { exitCode } = await exec(['sh', '-c', 'dbt parse && dbt build --exclude tag:slow tag:bad']);
    expect(exitCode).toBe(0);
    const verdicts = traceIdsIn(dataFolder).flatMap((traceId) => runOf(traceId).steps);
    expect(verdicts).toMatchObject([{ verdict: 'success' }, { verdict: 'success' }]);
  });

  const PARENT = { TRACEPARENT: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' };
  it.each([
    ['by their traces', {}, ''],
    ["by their spans, where they join the caller's trace", PARENT, ''],
    ['by their spans, where the command has one', { RUN_BRIDGE_SPAN: '1' }, ''],
    [
      'by their file, where they send no OTLP',
      { DBT_EXPORT_TO_OTLP: 'false' },
      // Then nothing holds an engine back until its files are copied.
      'until [ -s "$RUN_BRIDGE_DATA_DIR"/spool/*/snapshots/@/manifest.json ]; do sleep 0.1; done',
    ],
  ])(
    'makes each engine command of a script a step with artifacts and a verdict of its own, distinguished %s',
    async (_how, env, wait) => {
      const commands = ['dbt parse', 'dbt build --exclude tag:slow tag:bad', 'dbt test --select stg_orders'];
      const script = commands.map(
        (command, index) => `${command}; ${index < 2 ? wait.replace('@', String(index + 1)) : ''}\n`,
      );
      expect((await exec(['sh', '-c', script.join('')], env)).exitCode).toBe(0);
      const traceIds = traceIdsIn(dataFolder);
      const steps = traceIds.flatMap((traceId) => runOf(traceId).steps);
      const [first, ...others] = steps.toSorted((a, b) => (a.step?.index ?? 0) - (b.step?.index ?? 0));
      expect([first, ...others]).toMatchObject([
        { verdict: 'success', raw_command: 'dbt parse', step: { index: 1, ending: { kind: 'within' } } },
        { verdict: 'success', raw_command: commands[1], step: { index: 2, ending: { kind: 'within' } } },
        { verdict: 'success', raw_command: commands[2], step: { index: 3, ending: { kind: 'exited', exit_code: 0 } } },
      ]);
      expect(traceIds).toHaveLength('TRACEPARENT' in env || 'RUN_BRIDGE_SPAN' in env ? 1 : 3);
      const [runId = ''] = readdirSync(join(dataFolder, 'artifacts'));
      const written = (index: number, name: string) => {
        const path = join(dataFolder, 'artifacts', runId, String(index), name);
        return existsSync(path) ? JSON.parse(readFileSync(path, 'utf8')) : null;
      };
      const startedAt = [1, 2, 3].map((index) => written(index, 'manifest.json').metadata.invocation_started_at);
      expect(new Set(startedAt).size).toBe(3);
      expect(startedAt.toSorted()).toEqual(startedAt);
      // Parsing has no results.
      expect([1, 2, 3].map((index) => written(index, 'run_results.json')?.args.which)).toEqual([
        undefined,
        'build',
        'test',
      ]);
    },
    120_000,
  );

  it('takes of a file that the user keeps what this command wrote, however often, and beside another command', async () => {
    const parse = ['dbt', 'parse', ...OWN_FILE];
    for (let number = 0; number < 4; number++) expect((await exec(parse)).exitCode).toBe(0);
    const otherData = join(dataFolder, 'other');
    // One beside another needs a target folder of its own: the engine writes tests and snapshots there that it reads again
    // while it compiles, and fails by chance where another command has just emptied them.
    const [one, other] = await Promise.all([
      exec(['dbt', 'compile', '--target-path', join('target', 'compile'), ...OWN_FILE]),
      exec(parse, { RUN_BRIDGE_DATA_DIR: otherData }),
    ]);
    for (const { exitCode, output } of [one, other]) {
      expect([exitCode, output]).toEqual([0, expect.not.stringContaining('run-bridge:')]);
    }
    const commandsOf = (folder: string) =>
      traceIdsIn(folder).map((traceId) => {
        const { steps } = JSON.parse(readFileSync(join(folder, 'runs', traceId, 'run.json'), 'utf8'));
        return steps.map((step: { verdict: string; step: { index: number } | null }) => [
          step.verdict,
          step.step?.index,
        ]);
      });
    expect(commandsOf(dataFolder)).toEqual(Array.from({ length: 5 }, () => [['success', 1]]));
    expect(commandsOf(otherData)).toEqual([[['success', 1]]]);
  });

  describe('with an engine that heeds no OTEL_RESOURCE_ATTRIBUTES, whose resource is its brand and version', () => {
    const traceId = PARENT.TRACEPARENT.split('-')[1] ?? '';
    let bridge: BridgeProcess;
    beforeEach(async () => {
      bridge = await BridgeProcess.start({ dataFolder });
    });
    afterEach(() => bridge.stop());
    /** An engine command in folders of its own, without the variables. */
    const bare = (name: string, command: string) =>
      `env -u OTEL_RESOURCE_ATTRIBUTES -u OTEL_SERVICE_NAME dbt ${command} --target-path 'target/${name}' --log-path 'logs/${name}'`;
    const own = (name: string) => ({ SHOP_DB: join(engine.project, `${name}.duckdb`) });
    /** Starts two commands at the same time, of which the first fails. */
    const both = (run: (name: string, command: string) => Promise<EngineResult>) =>
      Promise.all([
        run('bad', bare('bad', 'build --exclude tag:slow')),
        run('good', bare('good', 'build --exclude tag:slow tag:bad')),
      ]);

    it('keeps commands of several exec in one trace apart, that run at the same time', async () => {
      const ends = await both((name, line) =>
        engine.runCommand(wrapAs(name, 'sh', '-c', line), {
          RUN_BRIDGE_DATA_DIR: dataFolder,
          ...PARENT,
          ...own(name),
        }),
      );
      expect(ends.map(({ exitCode }) => exitCode)).toEqual([1, 0]);
      await bridge.finished(traceId);
      const steps = runOf(traceId).steps.toSorted((a, b) => a.verdict.localeCompare(b.verdict));
      expect(steps).toMatchObject([
        { verdict: 'error', is_ambiguous: false, step: { job: 'bad', ending: { kind: 'exited', exit_code: 1 } } },
        { verdict: 'success', is_ambiguous: false, step: { job: 'good', ending: { kind: 'exited', exit_code: 0 } } },
      ]);
    });

    it('files commands in one trace by the paths of their endpoints, each of its job, that run at the same time', async () => {
      const [, trace = '', parent = ''] = PARENT.TRACEPARENT.split('-');
      const ends = await both((name, line) =>
        engine.runCommand(['sh', '-c', line], {
          ...own(name),
          DBT_EXPORT_TO_OTLP: 'true',
          DBT_INVOCATION_ID: trace,
          DBT_PARENT_SPAN_ID: parent,
          OTEL_EXPORTER_OTLP_ENDPOINT: `${bridge.otlpUrl}/environment/prod/job/${name}%20one`,
          NO_PROXY: '127.0.0.1',
        }),
      );
      expect(ends.map(({ exitCode }) => exitCode)).toEqual([1, 0]);
      // The first one to end may have finished the run for a while.
      const steps = await until('the end of both', async () => {
        await bridge.finished(traceId);
        const found = runOf(traceId).steps;
        return found.length === 2 && found;
      });
      const jobs = steps.map(({ verdict, resource }) => [verdict, resource.attributes['run_bridge.job']]);
      expect(jobs.toSorted()).toEqual([
        ['error', 'bad one'],
        ['success', 'good one'],
      ]);
      expect(logOf(traceId).includes('"span_name":null')).toBe(false);
    });
  });

  it("joins the caller's trace", async () => {
    const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
    await exec(['sh', '-c', 'dbt parse; dbt parse'], { TRACEPARENT: `00-${traceId}-00f067aa0ba902b7-01` });
    expect(traceIdsIn(dataFolder)).toEqual([traceId]);
    const roots = logOf(traceId).match(/"parent_span_id":"00f067aa0ba902b7"/g);
    expect(roots).toHaveLength(8);
    expect(runOf(traceId).steps).toMatchObject([{ verdict: 'success' }, { verdict: 'success' }]);
  });

  it.each(['SIGTERM', 'SIGKILL', 'SIGABRT'] as const)(
    'keeps what an engine wrote that %s kills, and says so',
    async (signal) => {
      const { exitCode, signal: endedBy } = await exec(['dbt', ...SLOW], {}, (child) => {
        void atWork().then(() => process.kill(childOf(child.pid ?? 0), signal));
      });
      expect(signal === 'SIGABRT' ? exitCode : endedBy).toBe(signal === 'SIGABRT' ? 134 : signal);
      const [step] = expectTheEnginesRecords();
      expect(step).toMatchObject({
        verdict: signal === 'SIGTERM' ? 'canceled' : 'error',
        status_message: expect.stringContaining(signal),
      });
    },
  );

  describe('with a server on the data folder', () => {
    let bridge: BridgeProcess;
    beforeEach(async () => {
      bridge = await BridgeProcess.start({ dataFolder });
    });
    afterEach(() => bridge.stop());

    const shown = () => {
      const [traceId = ''] = bridge.traceIds();
      return existsSync(join(dataFolder, 'runs', traceId, 'telemetry.jsonl')) ? logOf(traceId) : '';
    };

    it('lets the engine go first once its first records are shown, and not before', async () => {
      let child: ChildProcess | undefined;
      const command = exec(['dbt', ...SLOW], {}, (started) => {
        child = started;
      });
      try {
        await until('the engine to go first', () => givesWay(child?.pid ?? 0));
        expect(shown()).toContain('"record_type":"SpanStart"');
      } finally {
        child?.kill('SIGTERM');
        await command;
      }
    });

    it('tells the end of an engine command of a script when the next one has begun, while the script goes on', async () => {
      const go = join(dataFolder, 'go');
      const script = `dbt parse; dbt parse; until [ -e '${go}' ]; do sleep 0.1; done; exit 3`;
      const command = exec(['sh', '-c', script]);
      try {
        const headers = { authorization: `Token ${readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim()}` };
        const statuses = async () => {
          const answer = await fetch(
            `${bridge.webUrl}/api/v2/accounts/10001/runs/?limit=1&include_related=["run_steps"]`,
            { headers },
          );
          const { data } = (await answer.json()) as { data: readonly { run_steps: readonly { status: number }[] }[] };
          return data[0]?.run_steps.map(({ status }) => status) ?? [];
        };
        await until('the end of the first', async () => (await statuses())[0] === 10);
        const [, second = 0] = await statuses();
        expect([1, 2, 3]).toContain(second);
        writeFileSync(go, '');
        expect((await command).exitCode).toBe(3);
        // The code is that of the last one.
        await until('the end of all', async () => (await statuses()).join() === '10,20');
      } finally {
        writeFileSync(go, '');
        await command;
      }
    });

    it('shows what the engine has written while it works, in the order of its file', async () => {
      let child: ChildProcess | undefined;
      const command = exec(['dbt', ...SLOW], {}, (started) => {
        child = started;
      });
      try {
        await atWork();
        for (let looks = 0; looks < 20; looks++) {
          const written = engines();
          const whole = written.slice(0, written.lastIndexOf('\n') + 1);
          await until('what the engine has written', () => shown().startsWith(whole));
        }
      } finally {
        child?.kill('SIGTERM');
        await command;
      }
      expect(shown() === engines() ? 'the same' : 'different').toBe('the same');
    });
  });

  describe('what an engine that goes on alone writes', () => {
    const bridge = (command: string, ...words: readonly string[]) =>
      engine.runCommand([process.execPath, main, command, ...words], { RUN_BRIDGE_DATA_DIR: dataFolder });
    const spooled = () => {
      const folder = join(dataFolder, 'spool');
      return existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
    };
    const isThere = (name: string) => existsSync(join(spooled()[0] ?? '', name));
    const written = () => readFileSync(join(spooled()[0] ?? '', 'otel.jsonl'), 'utf8');
    const BUILD = 'dbt build --exclude tag:slow tag:bad';
    const NIGHTLY = { RUN_BRIDGE_JOB: 'nightly' };
    it.each([
      ['while', `${BUILD} >dbt.log 2>&1 & until [ -e "$DBT_OTEL_FILE_NAME" ]; do sleep 0.1; done; kill -STOP $!;`],
      ['after', `(kill -STOP $(cut -d' ' -f4 /proc/self/stat); exec ${BUILD}) >dbt.log 2>&1 &`],
    ])('is taken in with its job and exit code where it begins %s its command is at work', async (_when, script) => {
      const { exitCode, output } = await exec(['sh', '-c', `${script} echo engine $!; exit 3`], NIGHTLY);
      expect(exitCode, output).toBe(3);
      const [, pid = ''] = /engine (\d+)/.exec(output) ?? [];
      await bridge('report');
      expect(spooled()).toHaveLength(1);
      process.kill(Number(pid), 'SIGCONT');
      await until('the end of the engine', () => !existsSync(`/proc/${pid}`));
      const lines = written();
      expect((await bridge('report')).output).toContain('job nightly');
      expect(spooled()).toEqual([]);
      const [traceId = '', ...others] = traceIdsIn(dataFolder);
      expect(others).toEqual([]);
      expect(logOf(traceId) === lines ? 'the same' : 'different').toBe('the same');
      expect(runOf(traceId)).toMatchObject({
        job: { name: 'nightly' },
        steps: [{ parquet_file: 'telemetry.parquet', step: { index: 1, ending: { kind: 'exited', exit_code: 3 } } }],
      });
      expect(existsSync(join(dataFolder, 'runs', traceId, 'telemetry.parquet'))).toBe(true);
    });

    it('is taken in by a bridge at work with its job and exit code, each record once, where its folder is imported', async () => {
      const file = join(dataFolder, 'file');
      writeFileSync(file, '');
      // What was left in its file alone, and what its requests had beside it.
      const command = ['sh', '-c', `${BUILD} --log-level-file warn >dbt.log 2>&1; exit 3`];
      const { output } = await exec(command, { ...NIGHTLY, RUN_BRIDGE_DATA_DIR: join(file, 'data') });
      const [, folder = ''] = /left in (\S+): run-bridge import imports it/.exec(output) ?? [];
      const server = await BridgeProcess.start({ dataFolder });
      try {
        const counts: string[] = [];
        // The second time changes nothing.
        for (let times = 0; times < 2; times += 1) {
          const imported = await bridge('import', folder);
          expect(imported.exitCode, imported.output).toBe(0);
          counts.push(/(\d[\d,]*) records/.exec(imported.output)?.[1] ?? imported.output);
        }
        const [traceId = '', ...others] = server.traceIds();
        expect(others).toEqual([]);
        await server.finished(traceId);
        const lines = logOf(traceId).trimEnd().split('\n');
        expect(lines.length).toBeGreaterThan(100);
        expect(counts.map((count) => Number(count.replaceAll(',', '')))).toEqual([lines.length, lines.length]);
        expect(new Set(lines).size).toBe(lines.length);
        expect(runOf(traceId)).toMatchObject({
          job: { name: 'nightly' },
          steps: [{ step: { index: 1, ending: { kind: 'exited', exit_code: 3 } } }],
        });
      } finally {
        await server.stop();
        rmSync(folder, { recursive: true, force: true });
      }
    });

    const serve = async () => {
      const server = await BridgeProcess.start({ dataFolder });
      const [traceId = ''] = await until('the run', () => server.traceIds().length > 0 && server.traceIds());
      await server.finished(traceId);
      await server.stop();
    };
    it.each([
      ['exec', () => bridge('exec', '--', 'dbt', '--version')],
      ['exec of another program', () => bridge('exec', '--', 'true')],
      ['report', () => bridge('report')],
      ['query', () => bridge('query', 'select count(*) from nodes')],
      ['serve', serve],
    ])('is finished at once by the next %s where exec was killed', async (_name, next) => {
      let pid = 0;
      await exec(['sh', '-c', `exec ${BUILD} >dbt.log 2>&1`], NIGHTLY, (child) => {
        void until('the engine at work', () => isThere('lock.db') && isThere('otel.jsonl')).then(() => {
          pid = childOf(child.pid ?? 0);
          child.kill('SIGKILL');
        });
      });
      await until('the end of the engine', () => !existsSync(`/proc/${pid}`));
      const lines = written();
      await next();
      const [traceId = ''] = traceIdsIn(dataFolder);
      expect(logOf(traceId) === lines ? 'the same' : 'different').toBe('the same');
      expect(runOf(traceId)).toMatchObject({
        state: 'finished',
        job: { name: 'nightly' },
        steps: [{ verdict: 'success' }],
      });
      expect(existsSync(join(dataFolder, 'runs', traceId, 'telemetry.parquet'))).toBe(true);
      expect(spooled()).toEqual([]);
      expect((await bridge('report')).output).toContain('job nightly');
    });
  });

  it.each([
    ['SIGKILL', 'dbt "$@" | tee build.log'],
    ['SIGABRT', 'dbt "$@"; echo done'],
    ['SIGKILL', 'dbt "$@" || true'],
  ] as const)(
    'takes no engine for one that succeeded that %s kills in a script that ends well: %s',
    async (signal, line) => {
      const { exitCode } = await exec(['sh', '-c', line, 'sh', ...SLOW], {}, (child) => {
        void atWork().then(() => process.kill(childOf(childOf(child.pid ?? 0)), signal));
      });
      expect(exitCode).toBe(0);
      expect(expectTheEnginesRecords()).toMatchObject([
        { verdict: 'lost', status_message: expect.stringMatching(/No end was seen.*exit code 0/) },
      ]);
      const { output } = await engine.runCommand([process.execPath, main, 'report'], {
        RUN_BRIDGE_DATA_DIR: dataFolder,
      });
      expect(output).toContain('lost');
    },
  );

  it('passes SIGTERM on', async () => {
    const { signal } = await exec(['dbt', ...SLOW], {}, (child) => void atWork().then(() => child.kill('SIGTERM')));
    expect(signal).toBe('SIGTERM');
    expect(expectTheEnginesRecords()).toMatchObject([{ verdict: 'canceled' }]);
  });

  it('keeps a run that Ctrl+C in a terminal ends', async () => {
    // Inside a script nobody sees a flag.
    const watcher =
      '(until grep -q "Node processed (model.shop.slow_a)" logs/otel.jsonl; do sleep 0.1; done; echo ready) &';
    const script = `${watcher} exec dbt build --select +slow_a +slow_b`;
    const { output } = await engine.runCommand(['python3', terminal, 'ctrl-c', ...wrap('sh', '-c', script)], {
      RUN_BRIDGE_DATA_DIR: dataFolder,
      DBT_OTEL_FILE_NAME: 'otel.jsonl',
    });
    expect(output).toMatch(/^\{"exit"/);
    const [traceId = '', ...others] = traceIdsIn(dataFolder);
    expect(others).toEqual([]);
    // An engine that is interrupted may end before it has written its last lines: those come over OTLP, and stand behind the others.
    expect(logOf(traceId).startsWith(engines()) ? 'begins with the same' : 'different').toBe('begins with the same');
    const [step] = runOf(traceId).steps;
    expect(step).toMatchObject({ verdict: 'canceled', status_message: expect.stringMatching(/Interrupted|SIGINT/) });
  });

  describe('with answers after half a second and 1,000 models', () => {
    const command = ['dbt', 'build', '--log-level-file', 'trace', ...OWN_FILE];
    const QUEUES = {
      OTEL_BSP_MAX_QUEUE_SIZE: '100000',
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4096',
      OTEL_BLRP_MAX_QUEUE_SIZE: '100000',
      OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: '4096',
    };
    let project: string;
    let receiver: OtlpReceiver;
    beforeEach(async () => {
      project = generateProject(1_000);
      receiver = await OtlpReceiver.listen();
      receiver.answer = () => ({ delayMs: 500 });
    });
    afterEach(() => {
      receiver.close();
      rmSync(project, { recursive: true, force: true });
    });

    const inProject = (words: readonly string[], env: Readonly<Record<string, string>>) =>
      engine.runCommand(['sh', '-c', 'cd "$PROJECT" && exec "$@"', 'sh', ...words], {
        RUN_BRIDGE_DATA_DIR: dataFolder,
        RUN_BRIDGE_FLUSH_TIMEOUT: '60s',
        PROJECT: project,
        DBT_PROFILES_DIR: project,
        OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url,
        DBT_EXPORT_TO_OTLP: 'true',
        ...env,
      });
    const written = () => readFileSync(join(project, 'logs', 'otel.jsonl'), 'utf8');
    const endedCount = () => written().match(/"record_type":"SpanEnd"/g)?.length;

    it('exec loses no span, neither on disk nor on the way to the destination', async () => {
      const { exitCode, output } = await inProject(wrap(...command), {});
      // Two thousand artifacts take a while on a slow machine, and then it is said how far they are.
      const asExpected = 'uploading artifacts: \\d+ of \\d+|artifacts of the command that are not kept yet: ';
      expect([exitCode, new RegExp(`run-bridge:(?! (?:${asExpected})).*`).exec(output)?.[0]]).toEqual([0, undefined]);
      const [traceId = ''] = traceIdsIn(dataFolder);
      expect(logOf(traceId) === written() ? 'the same' : 'different').toBe('the same');
      expect(new Set(receiver.spanIds).size).toBe(endedCount());
    });

    it('the queue sizes of the documentation lose none without exec either', async () => {
      expect((await inProject(command, QUEUES)).exitCode).toBe(0);
      expect(new Set(receiver.spanIds).size).toBe(endedCount());
    });
  });

  /** Resolves when a slow model is being built. */
  async function atWork(): Promise<void> {
    const file = join(engine.project, 'logs', 'otel.jsonl');
    await until('a slow model', () => existsSync(file) && engines().includes('Node processed (model.shop.slow_a)'));
  }
});

describe("the run's id in the engine's run_results.json", () => {
  const ACCOUNT = 10_001;
  let engine: Engine;
  let folder: string;
  let bridge: BridgeProcess | undefined;
  beforeAll(() => {
    engine = Engine.up('core');
    folder = mkdtempSync(join(tmpdir(), 'run-bridge-exec-identity-'));
  });
  afterEach(async () => {
    await bridge?.stop();
    bridge = undefined;
  });
  afterAll(() => {
    engine.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  const ENGINE = ['seed', 'run --select stg_orders'].map((line) => `dbt ${line}`).join(' && ');
  const serve = async (name: string, args: readonly string[] = []) => {
    const dataFolder = join(folder, name);
    mkdirSync(dataFolder, { recursive: true });
    bridge = await BridgeProcess.start({ dataFolder, args: ['--otlp-auth', 'none', ...args] });
    const token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim();
    const { webUrl } = bridge;
    return async (path: string, method = 'GET', body?: string): Promise<unknown> => {
      const headers = { authorization: `Token ${token}` };
      const answer = await fetch(`${webUrl}/api/v2/accounts/${ACCOUNT}${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body }),
      });
      expect(answer.status).toBe(200);
      return answer.headers.get('content-disposition') === null
        ? ((await answer.json()) as { data: unknown }).data
        : answer.json();
    };
  };
  const exec = async (options: readonly string[], env: Readonly<Record<string, string>>) => {
    const line = [process.execPath, main, 'exec', '--job', 'nightly', '--reason', 'a test', ...options];
    const { exitCode, output } = await engine.runCommand([...line, '--', 'sh', '-c', ENGINE], env);
    expect(exitCode, output).toBe(0);
  };
  /** Compares what the run's artifact says with what the API answers for the run. */
  async function expectOwnIds(ask: Awaited<ReturnType<typeof serve>>, project: string | null): Promise<void> {
    const [run] = await until('the end of the run', async () => {
      const runs = (await ask('/runs/')) as readonly Record<string, unknown>[];
      return runs[0]?.is_complete === true && runs;
    });
    const ids = {
      DBT_CLOUD_RUN_ID: String(run?.id),
      DBT_CLOUD_JOB_ID: String(run?.job_id),
      DBT_CLOUD_PROJECT_ID: String(run?.project_id),
      DBT_CLOUD_ENVIRONMENT_ID: String(run?.environment_id),
      DBT_CLOUD_ACCOUNT_ID: String(ACCOUNT),
      DBT_CLOUD_RUN_REASON: 'a test',
      DBT_CLOUD_RUN_REASON_CATEGORY: 'other',
    };
    const results = [await ask(`/runs/${run?.id}/artifacts/run_results.json`)];
    if (project !== null) results.push(JSON.parse(readFileSync(join(project, 'target', 'run_results.json'), 'utf8')));
    for (const result of results) expect(result).toMatchObject({ metadata: { env: ids } });
  }

  it('is that of the API where exec has no server, which is started later', async () => {
    await exec([], { RUN_BRIDGE_DATA_DIR: join(folder, 'alone') });
    await expectOwnIds(await serve('alone'), engine.project);
  });

  it('is that of the API of a bridge elsewhere', async () => {
    const ask = await serve('elsewhere');
    await exec(['--to', bridge?.otlpUrl ?? ''], { RUN_BRIDGE_DATA_DIR: join(folder, 'own') });
    await expectOwnIds(ask, engine.project);
  });

  it('is that of the API where the run was started there', async () => {
    const config = join(folder, 'run-bridge.yaml');
    const env = { DBT_PROFILES_DIR: engine.project, DO_NOT_TRACK: '1', PATH: process.env.PATH ?? '' };
    const nightly = { 'working-dir': engine.project, command: [[engine.dbt, 'run', '--select', 'stg_orders']], env };
    writeFileSync(config, JSON.stringify({ jobs: { nightly } }));
    const ask = await serve('jobs', ['--config', config]);
    const [job] = (await ask('/jobs/')) as readonly { readonly id: number }[];
    await ask(`/jobs/${job?.id}/run/`, 'POST', '{"cause":"a test"}');
    await expectOwnIds(ask, engine.project);
  });
});

/** Whether a process leaves the processors to others. */
function givesWay(pid: number): boolean {
  return getPriority(pid) > getPriority();
}

function childOf(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ')[0]);
}
