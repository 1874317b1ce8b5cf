import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

const SAMPLES = ['build-mixed-fusion', 'build-clean', 'interrupted', 'fail-fast'];

/**
 * Writes real runs over and over with other ids and times, so that dictionaries and indexes grow as in a long history.
 * @returns how many lines were written
 */
export function writeLargeJsonl(path: string, byteCount: number): number {
  const texts = SAMPLES.map((sample) =>
    readFileSync(new URL(`../fixture/samples/${sample}/otel.jsonl`, import.meta.url), 'utf8'),
  );
  const file = openSync(path, 'w');
  let bytes = 0;
  let lineCount = 0;
  for (let run = 1; bytes < byteCount; run++) {
    const text = anotherRun(texts[run % texts.length] ?? '', run);
    bytes += writeSync(file, text);
    lineCount += text.split('\n').length - 1;
  }
  closeSync(file);
  return lineCount;
}

/**
 * Writes one real run's records over and over, with other ids and names of nodes, inside one command of one trace.
 * @returns the trace id
 */
export function writeLargeTrace(path: string, byteCount: number): string {
  const lines = readFileSync(new URL('../fixture/samples/build-mixed-fusion/otel.jsonl', import.meta.url), 'utf8')
    .split('\n')
    .slice(0, -1);
  const isRoot = (line: string) => /"event_type":"[\w.]+\.(Invocation|Process)"/.test(line);
  const roots = lines.filter((line) => isRoot(line));
  const kept = new Set(roots.map((line) => /"span_id":"(\w+)"/.exec(line)?.[1] ?? ''));
  const inner = lines.filter((line) => !isRoot(line)).join('\n');
  const ofRoots = (type: string) => `${roots.filter((line) => line.includes(`"${type}"`)).join('\n')}\n`;
  const file = openSync(path, 'w');
  let bytes = writeSync(file, ofRoots('SpanStart'));
  for (let run = 1; bytes < byteCount; run++) bytes += writeSync(file, `${moreOfRun(inner, run, kept)}\n`);
  writeSync(file, ofRoots('SpanEnd'));
  closeSync(file);
  return /"trace_id":"(\w+)"/.exec(lines[0] ?? '')?.[1] ?? '';
}

function moreOfRun(text: string, run: number, kept: ReadonlySet<string>): string {
  const mask = BigInt.asUintN(64, BigInt(run) * 0x9e3779b97f4a7c15n);
  const other = (hex: string) => (kept.has(hex) ? hex : (BigInt(`0x${hex}`) ^ mask).toString(16).padStart(16, '0'));
  return text
    .replace(/"(span_id|parent_span_id)":"(\w{16})"/g, (_, key, id) => `"${key}":"${other(id)}"`)
    .replace(/"event_id":"\w{8}/g, `"event_id":"${run.toString(16).padStart(8, '0')}`)
    .replace(/"unique_id":"([^"]*)"/g, (_, id) => `"unique_id":"${id}_${run}"`)
    .replace(/"time_unix_nano":"(\d{19})"/g, (_, time) => `"time_unix_nano":"${BigInt(time) + BigInt(run)}"`);
}

function anotherRun(text: string, run: number): string {
  const mask = BigInt.asUintN(64, BigInt(run) * 0x9e3779b97f4a7c15n);
  const other = (hex: string) => (BigInt(`0x${hex}`) ^ (mask >> BigInt(64 - hex.length * 4))).toString(16);
  return text
    .replace(/"(span_id|parent_span_id)":"(\w{16})"/g, (_, key, id) => `"${key}":"${other(id).padStart(16, '0')}"`)
    .replace(/"(trace_id|event_id)":"(\w{8})/g, (_, key, id) => `"${key}":"${other(id).padStart(8, '0')}`)
    .replace(/_unix_nano":"(\d{19})"/g, (_, time) => `_unix_nano":"${BigInt(time) + BigInt(run) * 7_000_000_123n}"`);
}
