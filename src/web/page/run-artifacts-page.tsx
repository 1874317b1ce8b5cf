import type { PassThrough } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Request, type Response, Router } from 'express';
import { ApiError } from '../../api/api-error.js';
import { authorize, callerOf } from '../../api/authenticator.js';
import { Permits, textRedactor, withPermit } from '../../api/permissions.js';
import { readableBytes } from '../../core/text.js';
import {
  type Artifact,
  type ArtifactFolder,
  type ArtifactPath,
  encodedArtifactPath,
  parseArtifactPath,
} from '../../storage/artifacts.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { sendPage } from './layout.js';
import type { PageDeps } from './page-deps.js';
import { Moment, Pager, pageNumber } from './parts.js';
import { RunShell, type ShownRun, shownRun } from './run-shell.js';

/** The files of a folder that stand on a page. */
const PAGE_SIZE = 500;
/** The part of a file that a page shows, in bytes. */
const MAX_PREVIEW_BYTES = 256 * 1024;
/** Files that are not text. */
const BINARY = /\.(?:parquet|msgpack|duckdb|db|gz|zst|zip)$/i;

/** Serves `/runs/{id}/artifacts`, the artifacts of a step with their sizes; `/runs/{id}/artifacts/{path}`, one of their folders, or the beginning of a file; and `/runs/{id}/artifacts.zip`, all artifacts of a step. */
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
    const folder = shown.step === null ? null : await opened(shown.step, '');
    await sendFolder(request, response, { shown, folder });
  });
  router.get('/runs/:runId/artifacts/*path', authorize('artifacts:read'), async (request, response) => {
    const shown = await shownRun(request, response, deps);
    const { step } = shown;
    const path = parseArtifactPath([request.params.path].flat().join('/'));
    if (step === null || path === undefined) throw ApiError.notFound();
    const file = await artifacts.stat(step, path).catch(unreadable);
    if (file === undefined) {
      const folder = await opened(step, path);
      if (folder.folders.length + folder.files.length === 0) throw ApiError.notFound();
      await sendFolder(request, response, { shown, folder });
      return;
    }
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

  /** Opens a folder; of one that has nothing but a folder, that one. */
  async function opened(step: CatalogStep, path: ArtifactPath | ''): Promise<OpenFolder> {
    const { folders, files } = await artifacts.listFolder(step, path).catch(unreadable);
    const [only, ...others] = folders;
    if (files.length === 0 && only !== undefined && others.length === 0) return await opened(step, only);
    return { path, folders, files };
  }

  async function sendFolder(
    request: Request,
    response: Response,
    { shown, folder }: { readonly shown: ShownRun; readonly folder: OpenFolder | null },
  ): Promise<void> {
    await sendPage(
      response,
      <RunShell {...shell(response, shown)}>
        <section aria-label="Artifacts">
          <FolderList step={shown.step} folder={folder} page={pageNumber(request)} />
        </section>
      </RunShell>,
    );
  }

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
  `/runs/${runId}/artifacts${path === '' ? '' : `/${encodedArtifactPath(path)}`}?step=${index}`;
const downloadOf = ({ accountId, runId, index }: CatalogStep, path: string) =>
  `/api/v2/accounts/${accountId}/runs/${runId}/artifacts/${encodedArtifactPath(path)}?step=${index}`;

/** A folder that is shown. */
interface OpenFolder extends ArtifactFolder {
  /** Empty for the step's. */
  readonly path: ArtifactPath | '';
}

function FolderList(props: {
  readonly step: CatalogStep | null;
  readonly folder: OpenFolder | null;
  readonly page: number;
}) {
  const { step, folder, page } = props;
  if (step === null || folder === null || folder.folders.length + folder.files.length === 0) {
    return (
      <p class="hint">
        There are none (yet). <code>run-bridge exec -- dbt build</code> keeps what the command leaves in{' '}
        <code>target/</code>; a program can upload files over <a href="/api/openapi.json">the API</a>.
      </p>
    );
  }
  const { path, folders, files } = folder;
  const shown = files.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE);
  return (
    <>
      <Way step={step} path={path} />
      <ul class="tree">
        {folders.map((inner) => (
          <li>
            <a class="name" href={pathOf(step, inner)}>
              {nameOf(inner)}/
            </a>
          </li>
        ))}
        {shown.map((file) => (
          <li>
            <a class="name" href={isText(file) ? pathOf(step, file.path) : downloadOf(step, file.path)}>
              {nameOf(file.path)}
            </a>{' '}
            <span class="soft">{readableBytes(file.sizeBytes)}</span>
          </li>
        ))}
      </ul>
      {files.length > PAGE_SIZE && (
        <Pager
          {...{ page, pageSize: PAGE_SIZE, totalCount: files.length, noun: 'file' }}
          words={['Before', 'Next']}
          href={(to) => `${pathOf(step, path)}&page=${to}`}
        />
      )}
      <p>
        <a href={`/runs/${step.runId}/artifacts.zip?step=${step.index}`} download>
          Download all (zip)
        </a>
      </p>
    </>
  );
}

/** Links to the folders that a path is in. */
function Way({ step, path }: { readonly step: CatalogStep; readonly path: ArtifactPath | '' }) {
  if (path === '') return null;
  const names = path.split('/');
  return (
    <nav aria-label="Folders" class="name">
      <a href={pathOf(step, '')}>Artifacts</a>
      {names.map((name, at) => (
        <>
          {' / '}
          {at === names.length - 1 ? name : <a href={pathOf(step, names.slice(0, at + 1).join('/'))}>{name}</a>}
        </>
      ))}
    </nav>
  );
}

const nameOf = (path: string) => path.slice(path.lastIndexOf('/') + 1);

function Preview(props: { readonly step: CatalogStep; readonly file: Artifact; readonly text: string | null }) {
  const { step, file, text } = props;
  return (
    <section aria-labelledby="file">
      <Way step={step} path={file.path} />
      <h2 id="file" class="name">
        {nameOf(file.path)}
      </h2>
      <p>
        {readableBytes(file.sizeBytes)}, <Moment unixMs={file.modifiedUnixMs} />.{' '}
        <a href={downloadOf(step, file.path)} download>
          Download
        </a>
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
