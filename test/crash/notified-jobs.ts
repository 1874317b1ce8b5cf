import { z } from 'zod';
import { until } from '../tool/until.js';

const stepPositionSchema = z.object({ run_id: z.number() });

/** Tells bridges of runs as `exec` does, until it is answered: they may be killed meanwhile. */
export class NotifiedJobs {
  /** Numbers of the runs of each job, in order. */
  readonly runs = new Map<string, string[]>();

  /** @param otlpUrl of a bridge; asked for anew each time */
  constructor(private readonly otlpUrl: () => string | undefined) {}

  /** Runs that succeed, of several jobs at a time, and one after the other within a job. */
  async run(jobCount: number, runsPerJob: number): Promise<void> {
    const jobs = Array.from({ length: jobCount }, (_, at) => `job${at}`);
    await Promise.all(jobs.map((job) => this.runJob(job, runsPerJob)));
  }

  private async runJob(job: string, count: number): Promise<void> {
    const ids: string[] = [];
    this.runs.set(job, ids);
    for (let at = 0; at < count; at += 1) {
      const step = `steps/${job}-${at}`;
      const begun = await this.say(step, { command: ['true'], started_unix_ms: Date.now(), job });
      ids.push(String(stepPositionSchema.parse(JSON.parse(begun)).run_id));
      await this.say(`${step}/end`, { ending: { kind: 'exited', exit_code: 0 }, ended_unix_ms: Date.now() });
    }
  }

  private say(path: string, body: object): Promise<string> {
    const ask = async () => {
      try {
        const url = `${this.otlpUrl()}/api/run-bridge/v1/executions/${path}`;
        const headers = { 'Content-Type': 'application/json' };
        const answer = await fetch(url, { method: 'PUT', headers, body: JSON.stringify(body) });
        return answer.ok ? (await answer.text()) || '{}' : undefined;
      } catch {
        return undefined;
      }
    };
    return until(path, ask);
  }
}
