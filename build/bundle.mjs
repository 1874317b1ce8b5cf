// Makes dist/ of src/ and the packages that it needs: few files, so that a start reads few. Types are not checked here (npm run types).
// What is left outside is what has native code; these packages alone are dependencies in package.json. Sources keep their names and lines' shape: nothing is minified.
// With --if-changed it does nothing where dist/ is newer than all that it is made of.
import { existsSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { rolldown } from 'rolldown';
import { keepConstants } from './constants.mjs';
import { thirdPartyNotices } from './third-party-notices.mjs';

const root = join(import.meta.dirname, '..');
const dist = join(root, 'dist');
if (process.argv.includes('--if-changed') && isUpToDate()) process.exit();

const shared = {
  cwd: root,
  plugins: [{ name: 'schemas', load: (id) => ready.get(id) }],
  platform: 'node',
  // The checksums and packers of Kafka's client, with their WebAssembly in the module: the usual entry reads a file beside itself.
  resolve: { alias: { ...openTelemetryModules(), '@platformatic/wasm-utils$': '@platformatic/wasm-utils/bundled' } },
  onLog(level, log, tell) {
    // Else it would be found missing when it is first needed.
    if (log.code === 'UNRESOLVED_IMPORT') throw new Error(log.message);
    tell(level, log);
  },
  tsconfig: 'tsconfig.json',
  external: [/^@?libsql(\/|$)/, /^@duckdb\//, /^pg-(native|cloudflare)$/],
};
const programs = {
  main: 'src/main.ts',
  'exporter-thread': 'src/export/exporter-thread-main.ts',
  'query-process': 'src/query/query-main.ts',
};
/** Programs of threads that do nothing but compute: a file each. */
const alone = { 'parquet-thread': 'src/parquet/parquet-thread-main.ts', 'range-worker': 'src/parquet/range-worker.ts' };
const files = { dir: dist, format: 'esm', entryFileNames: '[name].js', chunkFileNames: 'chunk/[name].js' };
const builds = [
  [programs, files],
  ...Object.entries(alone).map(([name, entry]) => [{ [name]: entry }, { ...files, codeSplitting: false }]),
];
rmSync(dist, { recursive: true, force: true });
/** Modules that say what .proto files say, by their paths: the programs have it without reading them. */
const ready = new Map();
for (const [file, name] of [
  ['read-schema', 'readSchema'],
  ['read-otlp-messages', 'readOtlpMessages'],
]) {
  const source = join(root, 'src/otlp', `${file}.ts`);
  ready.set(source, await readyModule(source, name));
}
const modules = [];
for (const [input, output] of builds) {
  const bundle = await rolldown({ ...shared, input });
  const written = await bundle.write(output);
  modules.push(...written.output.flatMap((chunk) => ('moduleIds' in chunk ? chunk.moduleIds : [])));
}
keepConstants(dist);
writeFileSync(join(dist, 'THIRD-PARTY-NOTICES.txt'), thirdPartyNotices(modules));

/** A module that returns as JSON what one of the sources returns now. @param name of its function, which takes no arguments */
async function readyModule(source, name) {
  const file = join(dist, 'now.js');
  const bundle = await rolldown({ ...shared, plugins: [], input: source });
  await bundle.write({ file, format: 'esm' });
  const { [name]: read } = await import(`${pathToFileURL(file).href}?${name}`);
  rmSync(file);
  const text = JSON.stringify(JSON.stringify(read()));
  return { code: `export const ${name} = () => JSON.parse(${text});`, moduleType: 'js' };
}

/** OpenTelemetry's packages as modules, of which only what is used comes along; as Node finds them, all of them would be loaded at each start. */
function openTelemetryModules() {
  const folder = join(root, 'node_modules', '@opentelemetry');
  const names = ['core', 'exporter-trace-otlp-http', 'otlp-transformer', 'resources', 'sdk-metrics'];
  return Object.fromEntries(names.map((name) => [`@opentelemetry/${name}`, join(folder, name, 'build/esm/index.js')]));
}

/** Whether the last file that is written into dist/ is newer than every source, every folder of sources and every installed package. */
function isUpToDate() {
  const last = join(dist, 'THIRD-PARTY-NOTICES.txt');
  if (!existsSync(last)) return false;
  const builtMs = statSync(last).mtimeMs;
  const files = ['src', 'build', 'proto'].flatMap((folder) => [
    folder,
    ...readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, String(name))),
  ]);
  return [...files, 'package.json', 'tsconfig.json', join('node_modules', '.package-lock.json')].every(
    (name) => statSync(join(root, name)).mtimeMs < builtMs,
  );
}
