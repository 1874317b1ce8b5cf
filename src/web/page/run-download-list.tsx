import { telemetryPlaceOf } from '../../storage/artifact/artifact-path.js';
import type { CatalogStep } from '../../storage/run-catalog.js';
import { countText } from './count-text.js';
import type { Download } from './run-downloads.js';

/** Missing artifacts that are named. */
const MAX_MISSING = 200;

/** Links to what a run left. */
export function RunDownloads(props: {
  readonly downloads: readonly Download[] | 'unreadable' | null;
  readonly steps: readonly CatalogStep[];
}) {
  const { downloads, steps } = props;
  const hasSeveralSteps = steps.length > 1;
  if (downloads === null) return null;
  return (
    <section aria-labelledby="artifacts">
      <h2 id="artifacts">Artifacts</h2>
      {steps.map((step) => (
        <Incomplete step={step} downloads={downloads} hasSeveralSteps={hasSeveralSteps} />
      ))}
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

/** How far the upload of a step's artifacts is, or which of them never came. */
function Incomplete(props: {
  readonly step: CatalogStep;
  readonly downloads: readonly Download[] | 'unreadable';
  readonly hasSeveralSteps: boolean;
}) {
  const { step, downloads, hasSeveralSteps } = props;
  const { artifacts, index } = step;
  if (artifacts === null) return null;
  const { state, expectedCount, missing, reason } = artifacts;
  const of = hasSeveralSteps ? ` of step ${index}` : '';
  if (state === 'uploading') {
    const kept = downloads === 'unreadable' ? [] : downloads.filter((one) => one.stepIndex === index);
    const count = kept.filter(({ path }) => telemetryPlaceOf(path) === undefined).length;
    return (
      <p class="notice">
        {count.toLocaleString('en')} of {countText(expectedCount, 'artifact')}
        {of} have been uploaded; the run is over when all are there.
      </p>
    );
  }
  return (
    <details>
      <summary class="notice bad">
        {missing.length.toLocaleString('en')} of {countText(expectedCount, 'artifact')}
        {of} never came: {reason}
      </summary>
      <ul>
        {missing.slice(0, MAX_MISSING).map((path) => (
          <li class="name">{path}</li>
        ))}
      </ul>
      {missing.length > MAX_MISSING && <p>and {(missing.length - MAX_MISSING).toLocaleString('en')} more</p>}
    </details>
  );
}
