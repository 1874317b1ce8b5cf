const { existsSync, readdirSync } = require('node:fs');

// Folders with one door, their `feature.ts`: nobody outside imports anything else of them, but their `commands.ts` where the door loads much.
const features = [
  'webhook',
  'job',
  'artifact',
  'retention',
  'settings',
  'history',
  'query',
  'exec',
  'metric',
  'report',
  'platform',
  'files',
  'export',
  'cluster',
];
// Folders of a lower row that have such a door, too.
const doors = ['receiver'];
// The layers of src/, lowest first: a folder may import itself and what stands in a row above it, never below.
const layers = [
  ['core', 'record'],
  ['otlp'],
  ['storage'],
  ['log'],
  ['run'],
  ['parquet', 'redaction'],
  ['receiver'],
  ['api'],
  ['web'],
  ['config'],
  ['cli'],
  ['feature.ts', ...features],
  ['app', 'app.ts'],
  ['commands'],
  ['main.ts'],
];

const pattern = (name) => (name.endsWith('.ts') ? `^src/${name.replace('.', '\\.')}$` : `^src/${name}/`);
for (const name of layers.flat()) {
  if (!existsSync(`src/${name}`)) throw new Error(`src/${name} is named in a layer and does not exist`);
}
for (const name of readdirSync('src')) {
  if (!layers.flat().includes(name)) throw new Error(`src/${name} stands in no layer`);
}
// Folders inside a folder that stand in a row of their own.
const nested = (name) => layers.flat().filter((other) => other.startsWith(`${name}/`));
const forbidden = [
  { name: 'no-cycles', severity: 'error', from: {}, to: { circular: true } },
  { name: 'no-orphans', severity: 'error', from: { orphan: true, path: '^src', pathNot: '^src/main\\.ts$' }, to: {} },
  {
    name: 'only-main-touches-the-process',
    severity: 'error',
    comment: 'argv, environment, exit codes and signals belong to src/main.ts',
    from: { path: '^src', pathNot: '^src/main\\.ts$' },
    to: { path: '^(node:)?process$' },
  },
  {
    name: 'only-who-composes-the-program-knows-the-cluster',
    severity: 'error',
    from: { path: '^src', pathNot: ['cluster', 'app', 'app.ts', 'commands'].map(pattern) },
    to: { path: pattern('cluster') },
  },
  {
    name: 'only-the-cluster-knows-the-client-of-kafka',
    severity: 'error',
    from: { path: '^src', pathNot: '^src/cluster/kafka/' },
    to: { path: 'node_modules/@platformatic/kafka' },
  },
];
for (const name of [...features, ...doors]) {
  forbidden.push({
    name: `${name}-has-one-door`,
    severity: 'error',
    from: { pathNot: pattern(name) },
    to: { path: pattern(name), pathNot: `^src/${name}/(feature|commands)\\.ts$` },
  });
}
for (const [row, names] of layers.entries()) {
  const above = layers.slice(row + 1).flat();
  for (const name of names) {
    if (above.length === 0) continue;
    forbidden.push({
      name: `${name}-imports-downwards`,
      severity: 'error',
      from: { path: pattern(name), ...(nested(name).length > 0 && { pathNot: nested(name).map(pattern) }) },
      to: { path: above.map(pattern) },
    });
  }
}

module.exports = {
  forbidden,
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'node', 'default'] },
  },
};
