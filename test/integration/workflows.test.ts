import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rolldown } from 'rolldown';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { recipe } from '../tool/recipes.js';

type Parser = typeof import('@actions/workflow-parser');

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');
const workflows = readdirSync(new URL('.github/workflows/', root));

let dir: string;
let parser: Parser;
// It imports JSON in a way that Node no longer takes, so it is bundled first.
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'run-bridge-workflows-'));
  const file = join(dir, 'parser.mjs');
  await (await rolldown({ input: '@actions/workflow-parser', platform: 'node' })).write({ file, format: 'esm' });
  parser = await import(file);
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

/** What GitHub's own parser says of a workflow: unknown keys, wrong values, expressions and jobs that are not there. */
async function faults(content: string): Promise<readonly string[]> {
  const { context, value } = parser.parseWorkflow(
    { name: 'workflow.yml', content },
    new parser.NoOperationTraceWriter(),
  );
  if (value !== undefined) await parser.convertWorkflowTemplate(context, value);
  return context.errors.getErrors().map(({ message }) => message);
}

describe('workflows of GitHub Actions', () => {
  test.each(workflows)('%s is one that GitHub takes', async (name) => {
    expect(await faults(read(`.github/workflows/${name}`))).toEqual([]);
  });

  test('that of the recipe is one that GitHub takes, and gives the action what it has', async () => {
    const content = recipe('# .github/workflows/dbt.yml');
    expect(await faults(content)).toEqual([]);
    const action = read('deploy/github/action.yml');
    const { inputs, outputs } = parse(action);
    const [step] = parse(content).jobs.build.steps.filter(({ id }: { id?: string }) => id === 'dbt');
    expect(Object.keys(inputs)).toEqual(expect.arrayContaining(Object.keys(step.with)));
    for (const [, name] of content.matchAll(/steps\.dbt\.outputs\.(\w+)/g))
      expect(Object.keys(outputs)).toContain(name);
  });

  test.each([
    ['a key that there is not', 'timeout-minutes:', 'timeout_minutes:', /Unexpected value 'timeout_minutes'/],
    ['a job that there is not', 'needs: package', 'needs: packing', /packing/],
    ['an expression of nothing', 'github.ref', 'githob.ref', /githob/],
  ])('%s would be found', async (_, right, wrong, message) => {
    const found = await faults(read('.github/workflows/release.yml').replace(right, wrong));
    expect(found.join('\n')).toMatch(message);
  });

  test.each(workflows)('%s names only npm scripts and files that are there', (name) => {
    const { scripts } = JSON.parse(read('package.json'));
    const text = read(`.github/workflows/${name}`);
    for (const [, script = ''] of text.matchAll(/npm run ([a-z:-]+)/g)) expect(scripts).toHaveProperty([script]);
    for (const [path] of text.matchAll(/(?<=[ :])(?:\.ci|test)\/[\w./-]+/g))
      expect(() => statSync(new URL(path, root))).not.toThrow();
  });

  test('the release has rights of its own in the jobs that publish alone', () => {
    const text = read('.github/workflows/release.yml');
    expect(text).toMatch(/^permissions:\n {2}contents: read\n\n/m);
    expect(text.match(/id-token: write|packages: write/g)).toEqual(['id-token: write', 'packages: write']);
  });
});
