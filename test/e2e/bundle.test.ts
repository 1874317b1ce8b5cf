import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';

const dist = new URL('../../dist/', import.meta.url).pathname;

/** Packages of which something is in some of the built files. */
function packagesIn(files: readonly string[]): ReadonlySet<string> {
  const paths = files.flatMap((file) => readFileSync(join(dist, file), 'utf8').match(/^\/\/ node_modules\/.*/gm) ?? []);
  return new Set(paths.flatMap((path) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1] ?? []));
}

test('what is bundled of other packages is named with its licence', () => {
  const files = readdirSync(dist, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.js'));
  const bundled = packagesIn(files);
  const notices = readFileSync(join(dist, 'THIRD-PARTY-NOTICES.txt'), 'utf8');
  const named = new Set(Array.from(notices.matchAll(/^=+\n(\S+) /gm), ([, name]) => name));
  expect(bundled).toContain('express');
  expect([...bundled].filter((name) => !named.has(name))).toEqual([]);
});

/** Built files that are loaded with some of them. */
function withImports(files: readonly string[], seen = new Set<string>()): readonly string[] {
  for (const file of files.filter((one) => !seen.has(one))) {
    seen.add(file);
    const imported = readFileSync(join(dist, file), 'utf8').matchAll(/^import .*"(\.\.?\/[^"]+)";$/gm);
    withImports(
      Array.from(imported, ([, path = '']) => join(dirname(file), path)),
      seen,
    );
  }
  return [...seen];
}

test('threads that write Parquet are a file each, in which constants are known as such', () => {
  for (const file of ['parquet-thread.js', 'range-worker.js']) {
    expect(withImports([file])).toEqual([file]);
    expect(readFileSync(join(dist, file), 'utf8')).toMatch(/^const view = new DataView\(memory\);$/m);
  }
});

test('constants of one chunk are constants in those that import them, classes too', () => {
  const names = readdirSync(join(dist, 'chunk'));
  const chunks = names.map((name) => readFileSync(join(dist, 'chunk', name), 'utf8'));
  const arena = names[chunks.findIndex((code) => /^const view = new DataView\(memory\);$/m.test(code))];
  // Others may call something of their own so.
  const users = chunks.filter((code) => new RegExp(`^import .* as view\\b.* from "\\./${arena}";$`, 'm').test(code));
  expect(users.length).toBeGreaterThan(3);
  for (const code of users) expect(code).toMatch(/^const view = view\$imported;$/m);
  for (const code of chunks) expect(code).not.toMatch(/^var \S+ = class\b/m);
});

test('exports bring what they use of OpenTelemetry, and not the packages behind that', () => {
  // What is loaded when they begin.
  const files = withImports(['chunk/exports.js', 'chunk/open-destinations.js', 'chunk/supervised-worker.js']);
  const openTelemetry = [...packagesIn(files)].filter((name) => name.startsWith('@opentelemetry/'));
  expect(openTelemetry).toContain('@opentelemetry/resources');
  expect(openTelemetry).not.toContain('@opentelemetry/otlp-transformer');
  expect(openTelemetry).not.toContain('@opentelemetry/sdk-metrics');
  expect(openTelemetry).not.toContain('@opentelemetry/otlp-exporter-base');
});
