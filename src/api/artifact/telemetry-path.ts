import type { ArtifactPath } from '../../store/artifact/artifact-path.js';

/** Which engine command's telemetry is meant. */
export interface TelemetryPlace {
  /** Position of the step in its run, from 1. */
  readonly stepIndex: number;
  /** Which of the step's engine commands, from 1. */
  readonly number: number;
}

/** Where a step's telemetry is among its artifacts. @param number which of its engine commands, from 1 */
export function telemetryPath(stepIndex: number, number: number): ArtifactPath {
  const rest = number === 1 ? '' : `-${number}`;
  // Safe as it stands.
  return `metadata/telemetry-${stepIndex}-otel${rest}.parquet` as ArtifactPath;
}

/** What such a path means; `undefined` for any other. */
export function telemetryPlaceOf(path: string): TelemetryPlace | undefined {
  const [, step, number] = /^metadata\/telemetry-([1-9]\d{0,8})-otel(?:-([1-9]\d{0,8}))?\.parquet$/.exec(path) ?? [];
  return step === undefined ? undefined : { stepIndex: Number(step), number: Number(number ?? 1) };
}
