import { closeSync, existsSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { cacheFolder } from '../test/tool/cache-folder.js';

const SAMPLE = 'test/fixture/samples/build-mixed/otel.jsonl';
const RUN_COUNT = 12;

/** A JSONL file and how many records it holds. */
export interface BigBuild {
  readonly path: string;
  readonly recordCount: number;
}

/**
 * One project built twelve times, as JSONL: a real run's records at trace level, over and over with other ids, times
 * and names of nodes until each build has a twelfth of the records; the names are the same in every build. Stays in
 * the cache folder.
 * @param atLeast how many records; rounded up to whole copies of the sample in whole builds
 */
export function bigBuild(atLeast: number): BigBuild {
  const lines = readFileSync(SAMPLE, 'utf8').trimEnd().split('\n');
  const copyCount = Math.ceil(atLeast / RUN_COUNT / lines.length);
  const recordCount = RUN_COUNT * copyCount * lines.length;
  const folder = join(cacheFolder(), 'bench');
  const path = join(folder, `big-build-${recordCount}.jsonl`);
  if (existsSync(path)) return { path, recordCount };
  mkdirSync(folder, { recursive: true });
  const text = `${lines.join('\n')}\n`;
  const file = openSync(`${path}.part`, 'w');
  for (let run = 1; run <= RUN_COUNT; run++) {
    for (let copy = 1; copy <= copyCount; copy++) writeSync(file, changed(text, run, copy));
  }
  closeSync(file);
  renameSync(`${path}.part`, path);
  return { path, recordCount };
}

function changed(text: string, run: number, copy: number): string {
  const spans = mask(run * 100_000 + copy);
  const traces = mask(run) >> 32n;
  const shiftNano = BigInt(run) * 3_600_000_000_000n + BigInt(copy) * 7_000_003n;
  const other = (hex: string, by: bigint) => (BigInt(`0x${hex}`) ^ by).toString(16).padStart(hex.length, '0');
  return text
    .replace(/"(span_id|parent_span_id)":"(\w{16})"/g, (_, key, id) => `"${key}":"${other(id, spans)}"`)
    .replace(/"trace_id":"(\w{8})/g, (_, start) => `"trace_id":"${other(start, traces)}`)
    .replace(/"event_id":"(\w{8})/g, (_, start) => `"event_id":"${other(start, spans >> 32n)}`)
    .replace(/"unique_id":"([^"]*)"/g, (_, id) => `"unique_id":"${id}_${copy}"`)
    .replace(/_unix_nano":"(\d{19})"/g, (_, time) => `_unix_nano":"${BigInt(time) + shiftNano}"`);
}

/** 64 bits that differ for each number. */
function mask(of: number): bigint {
  return BigInt.asUintN(64, BigInt(of) * 0x9e3779b97f4a7c15n);
}
