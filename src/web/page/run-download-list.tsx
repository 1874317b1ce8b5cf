import type { Download } from './run-downloads.js';

/** Links to what a run left. */
export function RunDownloads(props: {
  readonly downloads: readonly Download[] | 'unreadable' | null;
  readonly hasSeveralSteps: boolean;
}) {
  const { downloads, hasSeveralSteps } = props;
  if (downloads === null) return null;
  return (
    <section aria-labelledby="artifacts">
      <h2 id="artifacts">Artifacts</h2>
      {downloads === 'unreadable' && <p class="notice bad">Artifacts cannot be listed just now; the log says why.</p>}
      {downloads !== 'unreadable' && downloads.length === 0 && <p class="hint">There are none (yet).</p>}
      {downloads !== 'unreadable' && downloads.length > 0 && (
        <ul>
          {downloads.map(({ stepIndex, path, href }) => (
            <li>
              <a href={href} download>
                {path}
              </a>
              {hasSeveralSteps && <span class="sub">step {stepIndex}</span>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
