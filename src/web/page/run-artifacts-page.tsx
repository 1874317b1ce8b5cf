import type { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Response, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import { Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { readableBytes } from '../../core/text.js';
import { type Artifact, type ArtifactPath, encodedArtifactPath, parseArtifactPath } from '../../storage/artifacts.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { countText, Moment } from './parts.js';
import { RunShell, type ShownRun, shownRun } from './run-shell.js';

/** The most files that a page lists; more than an engine leaves for 1,000 models. */
const MAX_FILES = 5_000;
/** The part of a file that a page shows, in bytes. */
const MAX_PREVIEW_BYTES = 256 * 1024;
/** Files that are not text. */
const BINARY = /\.(?:parquet|msgpack|duckdb|db|gz|zst|zip)$/i;

/** Serves `/runs/{id}/artifacts`, the artifacts of a step with their sizes; `/runs/{id}/artifacts/{path}`, the beginning of a file; and `/runs/{id}/artifacts.zip`, all artifacts of a step. */
export function runArtifactsRouter(deps: PageDeps): Router {
  const { artifacts, redaction, clock, logger, version } = deps;
  const permits = new Permits('downloads of artifacts');
  const router = Router();
  const shell = (response: Response, shown: ShownRun) => {
    const caller = callerOf(response);
    const redactor = textRedactor(caller, redaction);
    return { shown, caller, redactor, version, tab: '/artifacts', nowUnixMs: clock.nowUnixMs() } as const;
  };
  router.get('/runs/:runId/artifacts', authorize('artifacts:read'), async (request, response) => {
    const shown = await shownRun(request, response, deps);
    const { step } = shown;
    const files = step === null ? [] : await artifacts.files(step).catch(unreadable);
    await sendPage(
      response,
      <RunShell {...shell(response, shown)}>
        <section aria-label="Artifacts">
          <FileList step={step} files={files} />
        </section>
      </RunShell>,
    );
  });
  router.get('/runs/:runId/artifacts/*path', authorize('artifacts:read'), async (request, response) => {
    const shown = await shownRun(request, response, deps);
    const { step } = shown;
    const path = parseArtifactPath([request.params.path].flat().join('/'));
    if (step === null || path === undefined) throw ApiError.notFound();
    const file = await artifacts.stat(step, path).catch(unreadable);
    if (file === undefined) throw ApiError.notFound();
    const text = isText(file) ? await beginningOf(step, path, file.sizeBytes) : null;
    await sendPage(
      response,
      <RunShell {...shell(response, shown)}>
        <Preview step={step} file={file} text={text} />
      </RunShell>,
    );
  });
  router.get('/runs/:runId/artifacts.zip', authorize('artifacts:read'), async (request, response) => {
    const { step } = await shownRun(request, response, deps);
    if (step === null) throw ApiError.notFound();
    const files = await artifacts.files(step).catch(unreadable);
    await withPermit(
      permits,
      response,
      () => sendZip(response, step, files),
      (reason) => `Too many artifacts are being downloaded at the moment: ${reason}.`,
    );
  });
  return router;

  async function beginningOf(step: CatalogStep, path: ArtifactPath, sizeBytes: number): Promise<string | null> {
    if (sizeBytes === 0) return '';
    const to = Math.min(sizeBytes, MAX_PREVIEW_BYTES);
    const opened = await artifacts.open(step, path, { from: 0, to }).catch(unreadable);
    if (opened === undefined) throw ApiError.notFound();
    const pieces: Buffer[] = [];
    for await (const piece of opened.content) pieces.push(piece as Buffer);
    const bytes = Buffer.concat(pieces);
    return bytes.includes(0) ? null : bytes.toString('utf8');
  }

  async function sendZip(response: Response, step: CatalogStep, files: readonly Artifact[]): Promise<void> {
    const { ZipFile } = await import('yazl');
    const zip = new ZipFile();
    const output = zip.outputStream as PassThrough;
    const broken = (error: unknown) => output.destroy(error instanceof Error ? error : undefined);
    zip.on('error', broken);
    for (const { path, modifiedUnixMs } of files) {
      zip.addReadStreamLazy(path, { mtime: new Date(modifiedUnixMs) }, (add) => {
        artifacts.open(step, path).then((opened) => {
          if (opened === undefined) broken(new Error(`${path} was removed while it was downloaded`));
          else add(null, opened.content);
        }, broken);
      });
    }
    zip.end();
    response.attachment(`run-${step.runId}-step-${step.index}.zip`).set({ 'Cache-Control': 'no-store' });
    // Readers notice an incomplete zip, since its directory is at the end; the connection is closed as well.
    await pipeline(output, response).catch((error: unknown) => {
      if (!response.writableEnded) logger.warn({ error: String(error) }, 'failed to send artifacts as a zip');
      response.destroy();
    });
  }

  function unreadable(error: unknown): never {
    logger.error({ error: String(error) }, 'failed to read artifacts');
    throw new ApiError(503, 'Artifacts cannot be read just now; the log of the server says why.', {
      'Retry-After': '5',
    });
  }
}

function isText({ path }: Artifact): boolean {
  return !BINARY.test(path);
}

const pathOf = ({ runId, index }: CatalogStep, path: string) =>
  `/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${index}`;
const downloadOf = ({ accountId, runId, index }: CatalogStep, path: string) =>
  `/api/v2/accounts/${accountId}/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${index}`;

function FileList({ step, files }: { readonly step: CatalogStep | null; readonly files: readonly Artifact[] }) {
  if (step === null || files.length === 0) {
    return (
      <p class="hint">
        There are none (yet). <code>run-bridge exec -- dbt build</code> keeps what the command leaves in{' '}
        <code>target/</code>; a program can upload files over <a href="/api/openapi.json">the API</a>.
      </p>
    );
  }
  const bytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  return (
    <>
      <p>
        {countText(files.length, 'file')}, {readableBytes(bytes)}.{' '}
        <a href={`/runs/${step.runId}/artifacts.zip?step=${step.index}`} download>
          Download all (zip)
        </a>
      </p>
      <FolderList step={step} folder={folderOf(files.slice(0, MAX_FILES))} />
      {files.length > MAX_FILES && (
        <p class="hint">and {(files.length - MAX_FILES).toLocaleString('en')} more, which are in the zip</p>
      )}
    </>
  );
}

/** The contents of a folder. */
interface Folder {
  readonly folders: Map<string, Folder>;
  readonly files: Artifact[];
  sizeBytes: number;
  fileCount: number;
}

const emptyFolder = (): Folder => ({ folders: new Map(), files: [], sizeBytes: 0, fileCount: 0 });

function folderOf(files: readonly Artifact[]): Folder {
  const root = emptyFolder();
  for (const file of files) {
    let folder = root;
    for (const name of file.path.split('/').slice(0, -1)) {
      const inner = folder.folders.get(name) ?? emptyFolder();
      folder.folders.set(name, inner);
      folder = inner;
      folder.sizeBytes += file.sizeBytes;
      folder.fileCount += 1;
    }
    folder.files.push(file);
  }
  return root;
}

/** A folder with more files than this is closed at first, for example compiled SQL of a whole project. */
const MANY_FILES = 20;

function FolderList({ step, folder }: { readonly step: CatalogStep; readonly folder: Folder }) {
  return (
    <ul class="tree">
      {[...folder.folders].map(([name, inner]) => (
        <li>
          <details open={inner.fileCount <= MANY_FILES}>
            <summary>
              <span class="name">{name}/</span>{' '}
              <span class="soft">
                {countText(inner.fileCount, 'file')}, {readableBytes(inner.sizeBytes)}
              </span>
            </summary>
            <FolderList step={step} folder={inner} />
          </details>
        </li>
      ))}
      {folder.files.map((file) => (
        <li>
          <a class="name" href={isText(file) ? pathOf(step, file.path) : downloadOf(step, file.path)}>
            {file.path.slice(file.path.lastIndexOf('/') + 1)}
          </a>{' '}
          <span class="soft">{readableBytes(file.sizeBytes)}</span>
        </li>
      ))}
    </ul>
  );
}

function Preview(props: { readonly step: CatalogStep; readonly file: Artifact; readonly text: string | null }) {
  const { step, file, text } = props;
  return (
    <section aria-labelledby="file">
      <h2 id="file" class="name">
        {file.path}
      </h2>
      <p>
        {readableBytes(file.sizeBytes)}, <Moment unixMs={file.modifiedUnixMs} />.{' '}
        <a href={downloadOf(step, file.path)} download>
          Download
        </a>{' '}
        <a href={`/runs/${step.runId}/artifacts?step=${step.index}`}>All artifacts</a>
      </p>
      {text === null && <p class="hint">This file is not text, so it is not shown.</p>}
      {text !== null && (
        <section class="code sql" tabindex={0} aria-label="Content of the file">
          <pre>{text}</pre>
        </section>
      )}
      {text !== null && file.sizeBytes > MAX_PREVIEW_BYTES && (
        <p class="hint">
          These are its first {readableBytes(MAX_PREVIEW_BYTES)} of {readableBytes(file.sizeBytes)}.
        </p>
      )}
    </section>
  );
}
