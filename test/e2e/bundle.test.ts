import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const dist = new URL('../../dist/', import.meta.url).pathname;

test('what is bundled of other packages is named with its licence', () => {
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  const paths = files.flatMap((file) => readFileSync(join(dist, file), 'utf8').match(/^\/\/ node_modules\/.*/gm) ?? []);
  const bundled = new Set(paths.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
  const notices = readFileSync(join(dist, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
  const named = new Set(Array.from(notices.matchAll(/^=+\n(\S+) /gm), ([, name]) => name));
  expect(bundled).toContain('express');
  expect([...bundled].filter((name) => !named.has(name))).toEqual([]);
});
