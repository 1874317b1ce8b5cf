import { setLatest } from '../core/lists.js';
import type { Artifact, ArtifactPath, ArtifactStore, OpenArtifact } from './artifacts.js';
import type { RunCatalog } from './run-catalog.js';

/** The artifact that says what a project has. */
export const MANIFEST = 'manifest.json' as ArtifactPath;

/** What a manifest says of a node that telemetry does not. */
export interface ManifestNode {
  readonly tags: readonly string[];
  /** Names or addresses: `meta.owner`, else those of its group. */
  readonly owners: readonly string[];
  readonly group: string | null;
  /** The node that a test is of. */
  readonly testedId: string | null;
  /** Unique ids of what it is made of. */
  readonly dependsOn: readonly string[];
  /** Of its file, as telemetry has it too; `null` where there is none, as of a test. */
  readonly checksum: string | null;
}

/** Nodes of a manifest by their unique ids. */
export type Manifest = ReadonlyMap<string, ManifestNode>;

const SECTIONS: ReadonlySet<string> = new Set(['nodes', 'sources', 'unit_tests', 'exposures', 'groups']);

/**
 * Reads a manifest of any size: one node at a time is in memory, and other work is done between pieces of the file. What is
 * not JSON gives the nodes before it.
 */
export async function readManifest(content: AsyncIterable<Uint8Array>): Promise<Manifest> {
  const scanner = new ManifestScanner();
  for await (const chunk of content) scanner.add(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
  return scanner.manifest();
}

/** Whether a unique id is that of a test, of data or of a unit. */
export function isTestId(uniqueId: string): boolean {
  return /^(?:unit_)?test\./.test(uniqueId);
}

/** Whether a unique id is that of a unit test, which runs before its model. */
export function isUnitTestId(uniqueId: string): boolean {
  return uniqueId.startsWith('unit_test.');
}

/** Manifests that are kept in memory. */
const MAX_KEPT = 4;

/** The manifest that a step left, where it is stored. */
export interface StepManifest {
  readonly runId: number;
  readonly stepIndex: number;
  /** Finds it; `undefined` if the step left none. */
  stat(path: ArtifactPath): Promise<Artifact | undefined>;
  open(path: ArtifactPath): Promise<OpenArtifact | undefined>;
}

/** Reads manifests of steps, and keeps the last ones. */
export class StepManifests {
  /** By run, step and version. */
  private readonly kept = new Map<string, Manifest>();

  /** @returns `undefined` if the step left none. @throws ArtifactError */
  async read(step: StepManifest): Promise<Manifest | undefined> {
    const found = await step.stat(MANIFEST);
    if (found === undefined) return undefined;
    const name = `${step.runId} ${step.stepIndex} ${found.etag}`;
    const known = this.kept.get(name);
    if (known !== undefined) return known;
    const opened = await step.open(MANIFEST);
    if (opened === undefined) return undefined;
    const manifest = await readManifest(opened.content);
    setLatest(this.kept, name, manifest, MAX_KEPT);
    return manifest;
  }
}

/** A run whose manifest is asked for. */
export interface ManifestRun {
  readonly accountId: number;
  readonly runId: number;
  readonly jobId: number;
  readonly environmentId: number;
}

/** What manifests are found with. */
export interface ManifestReaderDeps {
  readonly catalog: Pick<RunCatalog, 'stepsOf' | 'listRuns'>;
  readonly openArtifacts: () => Promise<Pick<ArtifactStore, 'stat' | 'open'>>;
}

/** Earlier runs that are looked through for a manifest. */
const MAX_EARLIER_RUNS = 10;

/** Reads the manifests that runs left. */
export class ManifestReader {
  private readonly manifests = new StepManifests();

  constructor(private readonly deps: ManifestReaderDeps) {}

  /**
   * Reads the manifest of a run; that of the latest earlier run of its job and environment while it has none, as when it has just
   * failed. `undefined` where none of the last ten left one. @throws ArtifactError
   */
  async read(run: ManifestRun): Promise<Manifest | undefined> {
    return (await this.ofRun(run)) ?? (await this.ofEarlier(run));
  }

  /** Reads the manifest of a run itself. @throws ArtifactError */
  async ofRun({ accountId, runId }: Pick<ManifestRun, 'accountId' | 'runId'>): Promise<Manifest | undefined> {
    const store = await this.deps.openArtifacts();
    for (const { index } of (await this.deps.catalog.stepsOf(accountId, [runId])).toReversed()) {
      const step = { runId, stepIndex: index };
      const manifest = await this.manifests.read({
        ...step,
        stat: (path) => store.stat({ ...step, path }),
        open: (path) => store.open({ ...step, path }),
      });
      if (manifest !== undefined) return manifest;
    }
    return undefined;
  }

  /** Reads that of the latest earlier run of its job and environment that left one, of the last ten. @throws ArtifactError */
  async ofEarlier({ accountId, runId, jobId, environmentId }: ManifestRun): Promise<Manifest | undefined> {
    const query = { jobId, environmentId, orderBy: 'id', isDescending: true, offset: 0 } as const;
    const { items } = await this.deps.catalog.listRuns(accountId, { ...query, limit: MAX_EARLIER_RUNS });
    for (const { id } of items) {
      if (id >= runId) continue;
      const earlier = await this.ofRun({ accountId, runId: id });
      if (earlier !== undefined) return earlier;
    }
    return undefined;
  }
}

const [QUOTE, BACKSLASH, OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, COLON] = Buffer.from('"\\{}[]:');
/** A longer key is none of a manifest's. */
const MAX_KEY_BYTES = 2_000;

/** Finds the objects of a manifest's sections by the depth of brackets, and parses each alone. */
class ManifestScanner {
  private readonly nodes = new Map<string, { readonly own: ManifestNode; readonly hasOwner: boolean }>();
  private readonly groupOwners = new Map<string, readonly string[]>();
  private depth = 0;
  private isInString = false;
  private isEscaped = false;
  /** The text that was read last, as far as it may be a key. */
  private key: number[] = [];
  private section = '';
  private uniqueId = '';
  /** Pieces of the object that is read, from earlier chunks. */
  private pieces: Buffer[] = [];

  add(chunk: Buffer): void {
    let start = this.pieces.length > 0 ? 0 : -1;
    for (let at = 0; at < chunk.length; at++) {
      const byte = chunk[at];
      if (this.isInString) {
        if (this.isEscaped) this.isEscaped = false;
        else if (byte === BACKSLASH) this.isEscaped = true;
        else if (byte === QUOTE) this.isInString = false;
        if (this.isInString && this.depth <= 2 && this.key.length < MAX_KEY_BYTES) this.key.push(byte ?? 0);
      } else if (byte === QUOTE) {
        this.isInString = true;
        if (this.depth <= 2) this.key = [];
      } else if (byte === COLON && this.depth <= 2) {
        if (this.depth === 1) this.section = keyText(this.key);
        else this.uniqueId = keyText(this.key);
      } else if (byte === OPEN || byte === OPEN_LIST) {
        this.depth += 1;
        if (this.depth === 3 && byte === OPEN && SECTIONS.has(this.section)) start = at;
      } else if (byte === CLOSE || byte === CLOSE_LIST) {
        this.depth -= 1;
        if (this.depth !== 2 || start === -1) continue;
        this.take(Buffer.concat([...this.pieces, chunk.subarray(start, at + 1)]));
        this.pieces = [];
        start = -1;
      }
    }
    if (start !== -1) this.pieces.push(chunk.subarray(start));
  }

  manifest(): Manifest {
    const found = new Map<string, ManifestNode>();
    for (const [id, { own, hasOwner }] of this.nodes) {
      const owners = hasOwner ? own.owners : (this.groupOwners.get(own.group ?? '') ?? []);
      found.set(id, { ...own, owners });
    }
    return found;
  }

  private take(text: Buffer): void {
    let value: unknown;
    try {
      value = JSON.parse(text.toString('utf8'));
    } catch {
      return;
    }
    const meta = valueAt(value, 'meta');
    const config = valueAt(value, 'config');
    const owner = valueAt(value, 'owner');
    if (this.section === 'groups') {
      this.groupOwners.set(textAt(value, 'name') ?? this.uniqueId, ownersOf(owner));
      return;
    }
    const owners = [meta, valueAt(config, 'meta'), valueAt(value, 'source_meta')]
      .map((one) => ownersOf(valueAt(one, 'owner')))
      .find((list) => list.length > 0);
    const dependsOn = textsAt(valueAt(value, 'depends_on'), 'nodes');
    const [dependency] = dependsOn;
    const isTest = isTestId(this.uniqueId);
    const testedId = textAt(value, 'attached_node') ?? textAt(value, 'tested_node_unique_id') ?? dependency ?? null;
    this.nodes.set(this.uniqueId, {
      own: {
        tags: [...new Set([...textsAt(value, 'tags'), ...textsAt(config, 'tags')])],
        owners: owners ?? ownersOf(owner),
        group: textAt(value, 'group') ?? textAt(config, 'group') ?? null,
        testedId: isTest ? testedId : null,
        dependsOn,
        checksum: textAt(valueAt(value, 'checksum'), 'checksum') ?? null,
      },
      hasOwner: owners !== undefined || ownersOf(owner).length > 0,
    });
  }
}

/** @param bytes as they stand between quotes */
function keyText(bytes: readonly number[]): string {
  const raw = Buffer.from(bytes).toString();
  try {
    return raw.includes('\\') ? String(JSON.parse(`"${raw}"`)) : raw;
  } catch {
    return raw;
  }
}

/** Reads an owner: a name, several of them, or an object with a name or an address. */
function ownersOf(value: unknown): readonly string[] {
  if (typeof value === 'string') return value === '' ? [] : [value];
  if (Array.isArray(value)) return value.flatMap(ownersOf);
  const name = textAt(value, 'name') ?? textAt(value, 'email');
  return name === undefined ? [] : [name];
}

function valueAt(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

function textAt(value: unknown, key: string): string | undefined {
  const found = valueAt(value, key);
  return typeof found === 'string' && found !== '' ? found : undefined;
}

function textsAt(value: unknown, key: string): readonly string[] {
  const found = valueAt(value, key);
  if (typeof found === 'string') return [found];
  return Array.isArray(found) ? found.filter((one) => typeof one === 'string') : [];
}
