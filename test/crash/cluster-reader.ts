import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';

const listSchema = z.object({
  extra: z.object({ pagination: z.object({ total_count: z.number() }) }),
});
const runSchema = z.object({ data: z.object({ id: z.number() }) });
const queriedSchema = z.object({ data: z.object({ rows: z.array(z.array(z.unknown())) }) });

/** Asks one of several processes about runs, as a client would. */
export class ClusterReader {
  constructor(
    private readonly webPort: number,
    private readonly token: string,
  ) {}

  /** How many runs it lists. */
  async countRuns(): Promise<number> {
    const list = listSchema.parse(await this.json('/api/v2/accounts/10001/runs/?limit=1'));
    return list.extra.pagination.total_count;
  }

  /** How many traces a query over all runs sees. */
  async countQueried(): Promise<number> {
    const sql = 'SELECT count(DISTINCT trace_id) FROM records';
    const init = { method: 'POST', body: JSON.stringify({ sql }), headers: { 'content-type': 'application/json' } };
    const { data } = queriedSchema.parse(await this.json('/api/run-bridge/v1/query', init));
    return Number(data.rows[0]?.[0]);
  }

  /** What it answers of a trace's first run that is not what the folder holds, one sentence each. */
  async compare(traceId: string, folder: string): Promise<readonly string[]> {
    const { data } = runSchema.parse(await this.json(`/api/run-bridge/v1/runs/${traceId}`));
    const path = `/api/v2/accounts/10001/runs/${data.id}/artifacts/metadata/telemetry-1-otel.parquet?step=1`;
    const parquet = Buffer.from(await (await this.ask(path)).arrayBuffer());
    const problems: string[] = [];
    if (!parquet.equals(readFileSync(join(folder, 'telemetry.parquet'))))
      problems.push(`${traceId}: another Parquet file`);
    const log = readFileSync(join(folder, 'telemetry.jsonl'), 'utf8');
    const events = await (await this.ask(`/api/run-bridge/v1/runs/${traceId}/events`)).text();
    const streamed = events
      .split('\n')
      .flatMap((line) => (line.startsWith('data: {"record_type"') ? [line.slice(6)] : []));
    if (streamed.join('\n') !== log.trimEnd()) problems.push(`${traceId}: ${streamed.length} records as events`);
    return problems;
  }

  private async json(path: string, init: RequestInit = {}): Promise<unknown> {
    const response = await this.ask(path, init);
    const text = await response.text();
    if (!response.ok) throw new Error(`${path} is answered ${response.status} ${text.slice(0, 300)}`);
    return JSON.parse(text);
  }

  private ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...init.headers, Authorization: `Token ${this.token}` };
    return fetch(`http://127.0.0.1:${this.webPort}${path}`, { ...init, headers });
  }
}
