import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { cacheFolder, installIntoCache } from './cache-folder.js';

/** Arguments: the folder, the Python that it is made from, packages. */
const MAKE_VENV = `set -e
folder=$1 base=$2; shift 2
[ ! -d "$folder/ready" ] || exit 0
rm -rf "$folder"
"$base" -m venv "$folder"
"$folder/bin/python" -m pip --quiet --disable-pip-version-check install "$@"
mkdir "$folder/ready"`;

/** A Python with packages that some tests use. */
interface TestPython {
  /** Arguments of `pip install`. */
  readonly packages: readonly string[];
  /** Versions of Python of which it needs one, the best first; any where left out. */
  readonly versions?: readonly string[];
}

/** Pythons that tests use. One whose packages change gets another name, since each is made once. */
export const PYTHONS = {
  parquet: { packages: ['pyarrow<20', 'duckdb'] },
  otlp: { packages: ['opentelemetry-proto==1.36.0'] },
  junitparser: { packages: ['junitparser==5.0.3'] },
  'dbt-protos-1.0.615': { packages: ['dbt-protos==1.0.615', 'protobuf>=6.31'] },
  'dbtc-0.11.7': { packages: ['dbtc==0.11.7', 'pyarrow<20'] },
  'airflow-cosmos-1.15': {
    packages: ['apache-airflow-providers-dbt-cloud==4.11.1', 'apache-airflow==3.3.2', 'astronomer-cosmos==1.15.1'],
  },
  'dagster-dbt-0.29.27': { packages: ['dagster-dbt==0.29.27', 'dagster==1.13.27', 'python-dateutil==2.9.0.post0'] },
  'prefect-dbt-0.7.25': {
    packages: ['--no-deps', '--requirement', 'test/fixture/clients/prefect-requirements.txt'],
  },
  'prefect-3.8.8': { packages: ['prefect==3.8.8', 'fastapi==0.139.0'] },
  'schemas-0.39': { packages: ['check-jsonschema==0.39.0', 'kubernetes-validate==1.37.0'] },
  'dbt-mcp-2.8.0': { packages: ['dbt-mcp==2.8.0'], versions: ['3.13', '3.12'] },
} as const satisfies Readonly<Record<string, TestPython>>;

export type PythonName = keyof typeof PYTHONS;

/**
 * Installs one of them into the cache where it is not yet there.
 * @returns the path of its interpreter
 * @throws Error where there is no Python that it can be made from
 */
export function pythonWith(name: PythonName): string {
  const folder = join(cacheFolder(), `venv-${name}`);
  if (!existsSync(join(folder, 'ready'))) {
    const base = basePython(name);
    if (base === undefined) throw new Error(`there is no Python that ${name} can be installed for`);
    installIntoCache(['bash', '-c', MAKE_VENV, 'make-venv', folder, base, ...PYTHONS[name].packages]);
  }
  return join(folder, 'bin', 'python');
}

/** The Python that one of them is made from; `undefined` where there is none of a version that it needs. */
export function basePython(name: PythonName): string | undefined {
  const { versions }: TestPython = PYTHONS[name];
  return versions === undefined ? 'python3' : findPython(versions);
}

/**
 * A Python of one of these versions that can make environments: the first of them on the path, else among pyenv's.
 * `undefined` where there is none.
 */
function findPython(versions: readonly string[]): string | undefined {
  const pyenv = join(process.env.PYENV_ROOT ?? join(homedir(), '.pyenv'), 'versions');
  const installed = existsSync(pyenv) ? readdirSync(pyenv).toSorted() : [];
  const candidates = [
    ...['python3', ...versions.map((version) => `python${version}`)],
    ...versions
      .flatMap((version) => installed.filter((one) => one.startsWith(`${version}.`)))
      .map((one) => join(pyenv, one, 'bin', 'python3')),
  ];
  return candidates.find((python) => versions.includes(versionOf(python) ?? ''));
}

/** A name on the path may be a launcher of pyenv's that runs nothing: it is asked. */
function versionOf(python: string): string | undefined {
  const code = 'import ensurepip, sys, venv; print("%d.%d" % sys.version_info[:2])';
  try {
    return execFileSync(python, ['-c', code], { stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim();
  } catch {
    return undefined;
  }
}
