import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { Lexer, marked, type Token } from 'marked';
import { type DefaultTreeAdapterMap, parse } from 'parse5';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCli } from '../../../src/commands/run-cli.js';
import { markdownReport } from '../../../src/report/github.js';
import { reportSchema } from '../../../src/report/schema.js';
import { compareCommands } from '../../../src/run/measures/compare-commands.js';
import type { NodeMeasure } from '../../../src/run/measures/node-measure.js';
import { bufferedText } from '../../fake/buffered-text.js';
import { contextIn, runInProcess } from '../../fake/run-in-process.js';
import { SAMPLES, SMALL_SAMPLES, sampleFolder, sampleTraceId } from '../../fake/sample-run.js';
import { hostileLines, hugeLines, STILL_ACTIVE } from '../../tool/hostile-run.js';
import { sampleMeasures } from '../run/measures/sample-measures.js';

let dir: string;
beforeAll(() => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-formats-'));
  writeFileSync(join(dir, 'hostile.jsonl'), `${hostileLines().join('\n')}\n`);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

const mixed = resolve(SAMPLES, 'build-mixed', 'otel.jsonl');

async function report(file: string, format: string, ...more: string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await runInProcess(['report', file, '--format', format, ...more], dir);
  expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' });
  return stdout;
}

/** A run of that many nodes, each of which failed with a long message. @param hasPhases whether they have phases, too */
function manyFailures(count: number, hasPhases = false): string {
  const lines = readFileSync(mixed, 'utf8').trimEnd().split('\n');
  const own = lines.filter(
    (line) =>
      line.includes('"model.shop.broken"') &&
      (/"SpanEnd".*NodeProcessed|"severity_number":17/.test(line) ||
        (hasPhases && /"SpanEnd".*NodeEvaluated/.test(line))),
  );
  const copies = Array.from({ length: count }, (_, index) =>
    own.map((line, part) => {
      const spanId = (own.length * index + part + 1).toString(16).padStart(16, '0');
      return line
        .replaceAll('model.shop.broken', `model.shop.broken_${index}`)
        .replace(/"span_id":"[0-9a-f]{16}"/, `"span_id":"${spanId}"`);
    }),
  );
  const path = join(dir, `many-${count}.jsonl`);
  writeFileSync(path, `${[...lines, ...copies.flat()].join('\n')}\n`);
  return path;
}

describe('Markdown', () => {
  test('names the failed nodes, their causes and what was skipped, before all else', async () => {
    const text = await report(mixed, 'markdown');
    const [head = ''] = text.split('<details>');
    expect(head).toMatch(/^### ❌ `dbt build .*` failed after 2\.0 s\n/);
    expect(head).toContain('- **`model broken`** in `models/marts/broken.sql`\n');
    expect(head).toContain('Binder Error: Referenced column "nonexistent_column" not found in FROM clause!');
    expect(head).toContain('skipped because of it: `model after_broken`');
    expect(head).toContain('\nRun again what failed: `dbt build --select ');
  });

  test('of 2,000 failed nodes it stays within what GitHub takes of a comment, and says how many there are', async () => {
    const text = await report(manyFailures(2_000), 'markdown');
    expect(Buffer.byteLength(text)).toBeLessThan(65_536);
    expect(Buffer.byteLength(text)).toBeGreaterThan(40_000);
    expect(text).toContain('\n#### 2001 nodes failed with an error\n');
    expect(text).toMatch(/\n- and \d+ more\n/);
    // What comes last is whole.
    expect(text).toMatch(/\n<\/details>\n$/);
  });

  test('against another run it says what changed, then what failed, then what got slower', async () => {
    const before = await sampleMeasures('build-clean');
    const seconds = (count: number) => ({ share: { queryNano: BigInt(count) * 1_000_000_000n, workNano: 0n } });
    const nodes = before.nodes.flatMap((node): readonly NodeMeasure[] => {
      if (node.uniqueId === 'model.shop.revenue') return [{ ...node, verdict: 'error', message: 'no such column' }];
      if (node.uniqueId === 'model.shop.stg_orders') return [{ ...node, ...seconds(5) }];
      if (node.uniqueId === 'seed.shop.raw_orders') return [];
      return [node];
    });
    const added = { ...before.nodes[0], uniqueId: 'model.shop.new_one', name: 'new_one', ...seconds(0) } as NodeMeasure;
    const after = { ...before, nodes: [...nodes, added] };
    const against = compareCommands(before, after);
    const report = { traceId: sampleTraceId('build-clean'), commandCount: 1, comparison: null };
    const text = markdownReport([{ ...report, command: after, against }]);
    const [, head = ''] = /\n(Against [\s\S]*?)\nWhere the /.exec(text) ?? [];
    expect(head.replaceAll(/\d+ ms/g, 'N ms').replaceAll(/\d+\.\d s/g, 'N s')).toBe(
      [
        'Against an earlier run, 2026-11-21 00:43 UTC: N ms longer · 1 ended otherwise · 1 slower · 1 new · 1 gone',
        '\n#### 1 node ended otherwise\n\n- **`model revenue`**: success → error',
        '\n#### 1 new node\n\n- **`seed new_one`**: success, N ms',
        '\n#### 1 gone node\n\n- **`seed raw_orders`**',
        '\n#### 1 node failed with an error\n\n- **`model revenue`** in `models/marts/revenue.sql`: `no such column`',
        '\n#### 1 slower node\n\n- **`model stg_orders`**: N ms → N s, N s longer\n',
      ].join('\n'),
    );
    const same = { ...against, changed: [], slower: [], faster: [], added: [], gone: [] };
    expect(markdownReport([{ ...report, command: before, against: same }])).toMatch(
      / longer · every node ended as before, and none took \d+ ms more or less of the run's time\n/,
    );
  });

  test.each([
    ['a run', []],
    ['a run beside another', ['--against', resolve(SAMPLES, 'build-clean', 'otel.jsonl')]],
  ])('nothing of %s is markup, a link or a mention', async (_name, more) => {
    const text = await report('hostile.jsonl', 'markdown', '--redaction', 'off', ...more);
    expect(text).toContain('<script>alert(1)</script>');
    const html: string[] = [];
    const kinds = new Set<string>();
    await marked.walkTokens(new Lexer().lex(text), (token: Token) => {
      kinds.add(token.type);
      if (token.type === 'html') html.push(token.raw.trim());
      if (token.type === 'text' && !('tokens' in token)) expect(token.raw).not.toMatch(/@somebody|#1|alert|owned/);
    });
    expect(html.join('\n')).toMatch(
      /^<details><summary>critical path, by times: [\w ]+<\/summary>\n<\/details>\n<details><summary>\d+ slowest nodes<\/summary>\n<\/details>$/,
    );
    expect([...kinds]).not.toContain('link');
    expect([...kinds]).not.toContain('image');
    for (const character of ['\u0000', '\u001b', '\u202e']) expect(text).not.toContain(character);
  });
});

describe('GitHub', () => {
  test('annotations stand beside the lines of files', async () => {
    const text = await report(mixed, 'github');
    expect(text).toContain(
      '::error file=models/marts/broken.sql,title=model broken::Binder Error: Referenced column "nonexistent_column" not found in FROM clause!%0A',
    );
    expect(text).toContain('\n::error file=models/schema.yml,line=25,title=test status_strict::1 failing row\n');
    expect(text).toContain(
      '\n::warning file=models/schema.yml,line=17,title=test orders_customer_warn::1 failing row\n',
    );
  });

  test('no more of them are printed than GitHub shows, and the rest is counted', async () => {
    const lines = (await report(manyFailures(30), 'github')).trimEnd().split('\n');
    expect(lines.filter((line) => line.startsWith('::error '))).toHaveLength(10);
    expect(lines.at(-1)).toBe('::notice::23 further errors not shown here');
  });

  test('a text of the run neither ends its annotation nor begins another', async () => {
    const text = await report('hostile.jsonl', 'github', '--redaction', 'off');
    for (const line of text.trimEnd().split('\n')) {
      // As GitHub reads them: properties up to the first `::`, in which commas and colons are escaped.
      const [, name, properties = '', message] = /^::(error|warning|notice)(?: (.*?))?::(.*)$/.exec(line) ?? [];
      expect(name).toBeDefined();
      for (const property of properties === '' ? [] : properties.split(','))
        expect(property).toMatch(/^(file|line|title)=[^:,]*$/);
      expect(message).not.toMatch(/%(?!25|0A|0D)/);
    }
    expect(text).toContain('owned%250A::stop-commands');
  });

  test('files are named from the folder of the repository on, and the summary of the step is added to', async () => {
    const summary = join(dir, 'summary.md');
    writeFileSync(summary, 'before\n');
    const environment = { GITHUB_ACTIONS: 'true', GITHUB_WORKSPACE: resolve(dir, '..'), GITHUB_STEP_SUMMARY: summary };
    const { stdout } = await runInProcess(['report', mixed, '--format', 'github'], dir, { environment });
    const folder = dir.slice(resolve(dir, '..').length + 1);
    expect(stdout).toContain(`::error file=${folder}/models/marts/broken.sql,`);
    expect(readFileSync(summary, 'utf8')).toMatch(/^before\n### ❌ `dbt build/);
  });
});

describe('JSON', () => {
  let validate: ValidateFunction;
  beforeAll(async () => {
    const { stdout } = await runInProcess(['report', '--schema'], dir);
    const schema = JSON.parse(stdout);
    expect(schema).toEqual(JSON.parse(readFileSync('docs/reference/report.schema.json', 'utf8')));
    expect(schema).toEqual(JSON.parse(JSON.stringify(reportSchema())));
    validate = new Ajv2020({ strict: false }).compile(schema);
  });

  test.each(SMALL_SAMPLES.map((name) => [name]))('of %s is as its published schema says', async (name) => {
    const document = JSON.parse(await report(resolve(sampleFolder(name), 'otel.jsonl'), 'json'));
    expect({ isValid: validate(document), errors: validate.errors }).toEqual({ isValid: true, errors: null });
    expect(document.commands.length).toBeGreaterThan(0);
    delete document.commands[0].verdict;
    expect(validate(document)).toBe(false);
  });
});

interface TraceEvent {
  readonly ph: string;
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: Readonly<Record<string, unknown>>;
}

describe('the trace for ui.perfetto.dev', () => {
  test.each(
    [...SMALL_SAMPLES.map((name) => resolve(sampleFolder(name), 'otel.jsonl')), 'hostile.jsonl'].map((path) => [path]),
  )('of %s has a name for each track, and slices that nest', async (path) => {
    const { traceEvents }: { traceEvents: readonly TraceEvent[] } = JSON.parse(await report(path, 'perfetto'));
    const slices = traceEvents.filter(({ ph }) => ph === 'X');
    expect(slices.length).toBeGreaterThan(3);
    const tracks = new Map<string, TraceEvent[]>();
    for (const event of slices) {
      const key = `${event.pid} ${event.tid}`;
      tracks.set(key, [...(tracks.get(key) ?? []), event]);
    }
    const named = traceEvents.filter(({ name }) => name === 'thread_name').map(({ pid, tid }) => `${pid} ${tid}`);
    expect(new Set(named).size).toBe(named.length);
    for (const [key, events] of tracks) {
      expect(named).toContain(key);
      // Nanoseconds, so that nothing is lost to fractions.
      const spans = events.map(
        ({ ts, dur }) => [Math.round(ts * 1e3), Math.round(ts * 1e3) + Math.round(dur * 1e3)] as const,
      );
      const open: number[] = [];
      let last = 0;
      for (const [start, end] of spans) {
        expect(start).toBeGreaterThanOrEqual(last);
        last = start;
        while ((open.at(-1) ?? Number.POSITIVE_INFINITY) <= start && end > start) open.pop();
        expect(end).toBeLessThanOrEqual(open.at(-1) ?? Number.POSITIVE_INFINITY);
        open.push(end);
      }
    }
  });
});

test('a timeline of many nodes at once has tens of tracks, and a height that can be read', async () => {
  const file = manyFailures(500, true);
  const { traceEvents }: { traceEvents: readonly TraceEvent[] } = JSON.parse(await report(file, 'perfetto'));
  const tracks = traceEvents.flatMap(({ name, args }) => (name === 'thread_name' ? [String(args.name)] : []));
  expect(tracks.filter((name) => name.startsWith('nodes '))).toHaveLength(32);
  expect(tracks).toContain('more nodes at once');
  const [crowd] = traceEvents.filter(({ name }) => /^\d+ more$/.test(name));
  expect(crowd?.args.count).toBeGreaterThan(400);
  expect(crowd?.args.first).toContain('model.shop.broken_');
  const html = await report(file, 'html');
  expect(Number(/viewBox="0 0 1200 (\d+)"/.exec(html)?.[1])).toBeLessThan(600);
  expect(html).toMatch(/<title>\d+ more at once<\/title>/);
});

type Element = DefaultTreeAdapterMap['element'];

/** All elements of a page, as a browser would read it. */
function elementsOf(html: string): readonly Element[] {
  const found: Element[] = [];
  const walk = (node: DefaultTreeAdapterMap['parentNode']) => {
    for (const child of node.childNodes) {
      if (!('tagName' in child)) continue;
      found.push(child);
      walk(child);
    }
  };
  const errors: string[] = [];
  walk(parse(html, { onParseError: ({ code }) => errors.push(code) }));
  expect(errors).toEqual([]);
  return found;
}

describe('HTML', () => {
  test('is one page with the failures first, a timeline, and nothing that is loaded or run', async () => {
    const html = await report(mixed, 'html');
    const order = ['model broken', 'Binder Error', 'skipped because of it: model after_broken', '<svg'].map((text) =>
      html.indexOf(text),
    );
    expect(order.every((at) => at > 0)).toBe(true);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    const elements = elementsOf(html);
    expect(elements.filter(({ tagName }) => /^(script|link|img|iframe|object|embed|base|form)$/.test(tagName))).toEqual(
      [],
    );
    const policy = elements.find(({ attrs }) => attrs.some(({ value }) => value === 'Content-Security-Policy'));
    expect(policy?.attrs.find(({ name }) => name === 'content')?.value).toMatch(
      /^default-src 'none'; style-src 'sha256-/,
    );
    expect(elements.filter(({ tagName }) => tagName === 'rect').length).toBeGreaterThan(20);
  });

  test('no text of a run becomes an element or an attribute', async () => {
    const html = await report('hostile.jsonl', 'html', '--redaction', 'off');
    expect(html).toContain('&lt;script&gt;alert(1)');
    for (const { tagName, attrs } of elementsOf(html)) {
      expect(tagName).not.toMatch(/^(script|img|a|b|i)$/);
      for (const { name } of attrs) expect(name).not.toMatch(/^(on|src|href|style)/);
    }
  });
});

describe('JUnit', () => {
  test('names the unit tests of each version of a model apart', async () => {
    const text = await report(resolve('test', 'fixture', 'versions', 'otel.jsonl'), 'junit');
    const names = [...text.matchAll(/<testcase name="([^"]*)"/g)].map(([, name]) => name);
    expect(names.toSorted()).toEqual([
      'dim_is_a.v1',
      'dim_is_a.v2',
      'dim_is_b.v1',
      'model fact.v2',
      'unique_dim_v1_id',
      'unique_dim_v2_id',
    ]);
  });

  const fixture = (sample: string) => resolve('test', 'fixture', 'samples', sample, 'otel.jsonl');
  const keysOf = (xml: string) =>
    [...xml.matchAll(/<testcase name="([^"]*)" classname="([^"]*)"/g)].map(([, name, of]) => `${of} ${name}`);

  test('has no case of what was only compiled', async () => {
    expect(keysOf(await report(fixture('compile'), 'junit'))).toEqual([]);
  });

  test('has the key of a case once, and the same in each run', async () => {
    const [mixed, fusion] = [
      await report(fixture('build-mixed'), 'junit'),
      await report(fixture('build-mixed-fusion'), 'junit'),
    ];
    const keys = keysOf(mixed);
    expect(new Set(keys).size).toBe(keys.length);
    expect(keysOf(fusion).toSorted()).toEqual(keys.toSorted());
  });

  test('gives equal names out by their nodes, whichever began first', async () => {
    const [failing, warning] = ['test.shop.status_strict.0c25ec6282', 'test.shop.orders_customer_warn.d69b09940d'];
    const text = readFileSync(mixed, 'utf8').replaceAll(warning, 'WARNING').replaceAll(failing, 'FAILING');
    const path = join(dir, 'equal-names.jsonl');
    const failingName = async (ofFailing: string, ofWarning: string) => {
      const named = text.replaceAll('"orders_customer_warn"', '"status_strict"');
      writeFileSync(path, named.replaceAll('WARNING', ofWarning).replaceAll('FAILING', ofFailing));
      return /<testcase name="(status_strict[^"]*)" [^>]*><failure/.exec(await report(path, 'junit'))?.[1];
    };
    const [first, second] = ['test.shop.status_strict.1', 'test.shop.status_strict.2'];
    expect(await failingName(first, second)).toBe('status_strict');
    expect(await failingName(second, first)).toBe('status_strict 2');
  });

  test('says first why the query of a test failed, and not that a row fails', async () => {
    const xml = await report(fixture('test-command'), 'junit', '--redaction', 'off');
    const [, message] = /name="not_null_after_broken_\w+" [^>]*><failure message="([^"]*)"/.exec(xml) ?? [];
    expect(message).toBe('Catalog Error: Table with name after_broken does not exist!');
    expect(xml).toMatch(/name="status_strict" [^>]*><failure message="1 failing row"/);
  });

  test('has nodes that were interrupted, models too', async () => {
    const xml = await report(fixture('interrupted'), 'junit');
    expect(xml).toMatch(/<testcase name="model slow_[ab]" [^>]*><skipped message="canceled"/);
  });

  test('has a stale source once, as a source; so have annotations and summaries', async () => {
    const xml = await report(fixture('stale-error'), 'junit');
    expect(keysOf(xml)).toEqual(['freshness/shop/models/src.yml source erp.orders']);
    expect(xml).toContain('message="source is stale: last updated');
    const annotations = await report(fixture('stale-error'), 'github');
    expect(annotations.match(/^::error /gm)).toHaveLength(1);
    expect(await report(fixture('stale-error'), 'text')).not.toContain('other errors');
  });
});

describe('every format', () => {
  const FORMATS = ['text', 'json', 'markdown', 'github', 'junit', 'html', 'perfetto'];

  test('is made of a run whose texts have 400 KB each', async () => {
    writeFileSync(join(dir, 'huge.jsonl'), `${hugeLines().join('\n')}\n`);
    for (const format of FORMATS) {
      const { length } = await report('huge.jsonl', format);
      expect(length).toBeLessThan(format === 'text' || format === 'json' ? 20_000_000 : 300_000);
      expect(length).toBeGreaterThan(500);
    }
  });

  test.each(FORMATS.filter((format) => format !== 'text' && format !== 'json').map((format) => [format]))(
    '%s follows the redaction that is set, and shows all without one',
    async (format) => {
      const secret = 'Wilhelmine4711';
      const path = join(dir, 'secret.jsonl');
      writeFileSync(
        path,
        readFileSync(mixed, 'utf8').replaceAll('not found in FROM clause', `conflicts with '${secret}'`),
      );
      expect(await report(path, format)).not.toContain(secret);
      expect(await report(path, format, '--redaction', 'off')).toContain(secret);
    },
  );

  test('text and JSON show all of it, wherever they are shown', async () => {
    expect(await report(mixed, 'text', '--redaction', 'literals')).toContain('1 row(s) differ.');
    expect(await report(mixed, 'json', '--redaction', 'literals')).toContain(
      '(in run/shop/models/marts/broken.sql:1:11)',
    );
  });

  test('a name that is none is answered with the nearest', async () => {
    const { exitCode, stderr } = await runInProcess(['report', mixed, '--format', 'jnuit'], dir);
    expect({ exitCode, stderr }).toEqual({
      exitCode: 2,
      stderr: 'run-bridge: --format: "jnuit" is no format; did you mean junit?\n',
    });
  });
});

test.each(['text', 'markdown', 'junit', 'html', 'json', 'perfetto'])(
  'what a CI system reads as %s holds none of its commands',
  async (format) => {
    const text = await report('hostile.jsonl', format, '--redaction', 'off');
    expect(text).toContain('owned');
    expect(text).not.toMatch(STILL_ACTIVE);
  },
);

test('on a terminal, lines that are broken begin with none either', async () => {
  const stdout = new PassThrough();
  const context = { ...contextIn(dir), stdout, stdoutColumns: 40 };
  const line = (at: number) => `${'x'.repeat(at)}::error::owned`;
  const path = join(dir, 'wide.jsonl');
  const lines = hostileLines().map((one) => JSON.parse(one));
  for (const record of lines)
    if (record.severity_number >= 17) record.body = Array.from({ length: 41 }, (_, at) => line(at)).join(' ');
  writeFileSync(path, `${lines.map((record) => JSON.stringify(record)).join('\n')}\n`);
  expect(await runCli(['report', path], context)).toBe(0);
  const text = stripVTControlCharacters(bufferedText(stdout));
  expect(text).toContain('owned');
  expect(text).not.toMatch(STILL_ACTIVE);
});
