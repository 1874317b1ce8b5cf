import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleTraceId } from '../fake/sample-run.js';
import { BridgeProcess } from '../tool/bridge-process.js';
import { buildPeer, PeerProcess, peersFolder } from '../tool/peer-process.js';
import { sendSample } from '../tool/send-sample.js';
import { until } from '../tool/until.js';

const PORT = 19_090;
const ALERTS = 'deploy/prometheus/alerts.yaml';

interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [unixSeconds: number, text: string];
}

/** Asks Prometheus' API. @param path with its query, below `/api/v1` */
async function ask<Data>(path: string): Promise<Data> {
  const answer = (await (await fetch(`http://127.0.0.1:${PORT}/api/v1${path}`)).json()) as { readonly data: Data };
  return answer.data;
}

const query = async (expression: string) =>
  (await ask<{ readonly result: readonly Series[] }>(`/query?query=${encodeURIComponent(expression)}`)).result;

beforeAll(() => buildPeer('prometheus'));

it('takes the rules of alerts, and the configuration of Compose that names them', () => {
  const promtool = (...args: readonly string[]) =>
    execFileSync(join(peersFolder(), 'bin', 'promtool'), args, { encoding: 'utf8' });
  expect(promtool('check', 'rules', ALERTS)).toContain('SUCCESS');
  expect(promtool('check', 'config', 'deploy/prometheus/prometheus.yaml')).toContain('SUCCESS');
});

describe('Prometheus, of real runs', () => {
  const folder = mkdtempSync(join(tmpdir(), 'run-bridge-prometheus-'));
  let bridge: BridgeProcess;
  let prometheus: PeerProcess;

  beforeAll(async () => {
    bridge = await BridgeProcess.start({
      env: {
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `http://127.0.0.1:${PORT}/api/v1/otlp/v1/metrics`,
        OTEL_METRIC_EXPORT_INTERVAL: '500',
      },
    });
    await sendSample(bridge.otlpUrl, 'build-clean');
    await sendSample(bridge.otlpUrl, 'fail-fast');
    await bridge.finished(sampleTraceId('fail-fast'));
    cpSync(ALERTS, join(folder, 'alerts.yaml'));
    const configuration = readFileSync('deploy/prometheus/prometheus.yaml', 'utf8')
      .replaceAll('15s', '1s')
      .replace('run-bridge:4380', new URL(bridge.webUrl).host);
    writeFileSync(join(folder, 'prometheus.yaml'), configuration);
    const args = [
      `--config.file=${join(folder, 'prometheus.yaml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${PORT}`,
      '--enable-feature=exemplar-storage',
      '--web.enable-otlp-receiver',
    ];
    prometheus = await PeerProcess.startWith('prometheus', args, PORT, {});
    await until('Prometheus', async () => (await fetch(`http://127.0.0.1:${PORT}/-/ready`)).ok);
  });
  afterAll(async () => {
    await prometheus?.stop();
    await bridge?.remove();
    rmSync(folder, { recursive: true, force: true });
  });

  it('has how they ended and how long they took, with a trace to look at', async () => {
    const counts = await until('both runs', async () => {
      const found = await query('cicd_pipeline_run_duration_seconds_count{job="run-bridge"}');
      return found.length === 2 && found;
    });
    expect(Object.fromEntries(counts.map(({ metric, value }) => [metric.cicd_pipeline_result, value[1]]))).toEqual({
      success: '1',
      failure: '1',
    });
    const p95 = 'histogram_quantile(0.95, sum by (le) (cicd_pipeline_run_duration_seconds_bucket{job="run-bridge"}))';
    expect(Number((await query(p95))[0]?.value[1])).toBeGreaterThan(0);
    const exemplars = await until('a trace for each', async () => {
      const path = `/query_exemplars?query=cicd_pipeline_run_duration_seconds_bucket&start=0&end=${Date.now() / 1_000}`;
      const found =
        await ask<readonly { readonly exemplars: readonly { readonly labels: { readonly trace_id: string } }[] }[]>(
          path,
        );
      const traces = found.flatMap((series) => series.exemplars.map(({ labels }) => labels.trace_id));
      return traces.length > 0 && traces;
    });
    expect([sampleTraceId('build-clean'), sampleTraceId('fail-fast')]).toContain(exemplars[0]);
  });

  it('fires for a run that failed and its failing test, and for nothing else', async () => {
    const alerts = await until('two alerts', async () => {
      const { alerts: all } = await ask<{
        readonly alerts: readonly {
          readonly state: string;
          readonly labels: { readonly alertname: string };
          readonly annotations: { readonly summary: string };
        }[];
      }>('/alerts');
      return new Set(all.map(({ labels }) => labels.alertname)).size > 1 && all;
    });
    // Of what was pushed, too, where both have come.
    expect([...new Set(alerts.map(({ labels }) => labels.alertname))].toSorted()).toEqual([
      'RunFailed',
      'TestsFailing',
    ]);
    expect(alerts.map(({ annotations }) => annotations.summary)).toContain('the last run of adhoc failed');
  });

  it('gets the same by OTLP', async () => {
    const pushed = await until('what was pushed', async () => {
      const found = await query(
        '{__name__=~"cicd_pipeline_run_duration_seconds_count", job="run-bridge", instance!~"127.*"}',
      );
      return found.length === 2 && found;
    });
    expect(pushed.map(({ metric, value }) => [metric.cicd_pipeline_name, value[1]])).toEqual([
      ['adhoc', '1'],
      ['adhoc', '1'],
    ]);
  });
});
