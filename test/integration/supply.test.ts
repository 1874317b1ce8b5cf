import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const root = new URL('../../', import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), 'utf8');

test('each package that is installed has a hash in package-lock.json', () => {
  const packages = Object.entries<{ link?: boolean; integrity?: string }>(
    JSON.parse(read('package-lock.json')).packages,
  );
  const wanting = packages.filter(
    ([path, { link, integrity }]) => path !== '' && !link && !/^sha512-\S+={0,2}$/.test(integrity ?? ''),
  );
  expect(wanting.map(([path]) => path)).toEqual([]);
  expect(packages.length).toBeGreaterThan(100);
});

test.each(readdirSync(new URL('.github/workflows/', root)))(
  '%s names actions by their commits, and says the version',
  (name) => {
    const used = [...read(`.github/workflows/${name}`).matchAll(/uses: *(.*)/g)].map(([, action]) => action);
    expect(used.length).toBeGreaterThan(0);
    for (const action of used) expect(action).toMatch(/^[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  },
);

test('the image is built on images with a digest', () => {
  const lines = read('Dockerfile').split('\n');
  const from = lines.filter((line) => /^FROM |^# syntax=/i.test(line));
  expect(from.length).toBeGreaterThan(0);
  for (const line of from) expect(line).toMatch(/^FROM \S+:\S+@sha256:[0-9a-f]{64}(?: AS \w+)?$/);
});
