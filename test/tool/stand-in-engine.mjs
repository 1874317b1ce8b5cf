// Does with telemetry what the engine does: appends the JSONL of a sample run to DBT_OTEL_FILE_NAME, line by line, and
// sends its OTLP bodies to OTEL_EXPORTER_OTLP_ENDPOINT.
// usage: stand-in-engine.mjs SAMPLE [--no-file] [--no-otlp] [--slow MS] [--stay] [--now] [--trace ID]
// --trace: another trace id than the sample's
// --now: times of the JSONL begin now, as those of a command that is under way
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const NANOSECONDS = /(?<=time_unix_nano":")\d{19}/g;
const [sample, ...flags] = process.argv.slice(2);
const pauseMs = flags.includes('--slow') ? Number(flags[flags.indexOf('--slow') + 1]) : 0;
const file = process.env.DBT_OTEL_FILE_NAME;
if (file && !flags.includes('--no-file')) {
  const lines = ofTrace(readFileSync(join(sample, 'otel.jsonl'))).toString();
  for (const line of (flags.includes('--now') ? fromNow(lines) : lines).trimEnd().split('\n')) {
    appendFileSync(file, `${line}\n`);
    if (pauseMs > 0) await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
const endpoint = process.env.OTEL_EXPORTER_OTLP_ENDPOINT;
if (endpoint && !flags.includes('--no-otlp')) {
  for (const name of readdirSync(join(sample, 'otlp')).sort()) {
    const url = `${endpoint}/v1/${name.includes('traces') ? 'traces' : 'logs'}`;
    const headers = { 'content-type': 'application/x-protobuf' };
    const answer = await fetch(url, {
      method: 'POST',
      headers,
      body: ofTrace(readFileSync(join(sample, 'otlp', name))),
    });
    if (answer.status !== 200) process.exitCode = 70;
  }
}
if (flags.includes('--stay')) {
  console.log('ready');
  setInterval(() => {}, 1000);
}

/** @param {Buffer} bytes */
function ofTrace(bytes) {
  if (!flags.includes('--trace')) return bytes;
  const trace = flags[flags.indexOf('--trace') + 1];
  const [, own] = /"trace_id":"([0-9a-f]{32})"/.exec(readFileSync(join(sample, 'otel.jsonl'), 'utf8'));
  const text = bytes.toString('latin1').replaceAll(own, trace);
  const [before, after] = [own, trace].map((id) => Buffer.from(id, 'hex').toString('latin1'));
  return Buffer.from(text.replaceAll(before, after), 'latin1');
}

/** @param {string} lines */
function fromNow(lines) {
  const [first] = lines.match(NANOSECONDS);
  const laterNano = BigInt(Date.now()) * 1_000_000n - BigInt(first);
  return lines.replaceAll(NANOSECONDS, (text) => String(BigInt(text) + laterNano));
}
