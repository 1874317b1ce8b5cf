/** Where telemetry goes. */
export interface FirstRunProps {
  readonly otlpUrl: string;
  /** Whether senders need a token there, or their runs would be another account's. */
  readonly isTokenNeeded: boolean;
}

/** For who has no run yet: how to send the first one. */
export function FirstRun({ otlpUrl, isTokenNeeded }: FirstRunProps) {
  const header = isTokenNeeded ? ' OTEL_EXPORTER_OTLP_HEADERS="Authorization=Bearer $TOKEN"' : '';
  // Without a token a command's run is the first account's, and without an address it looks for the data folder.
  const exec = isTokenNeeded ? `RUN_BRIDGE_TOKEN=$TOKEN run-bridge exec --to ${otlpUrl}` : 'run-bridge exec';
  return (
    <section class="empty">
      <h2>No run has come yet</h2>
      <p>On this machine, put run-bridge before your command; the run is here a second later:</p>
      <pre class="command" tabindex={0}>
        {exec} -- dbt build
      </pre>
      <p>From anywhere else, tell the engine where to send it:</p>
      <pre class="command" tabindex={0}>
        {`OTEL_EXPORTER_OTLP_ENDPOINT=${otlpUrl}${header} dbt build --export-to-otlp`}
      </pre>
      <p>
        No project at hand? <code>run-bridge demo --to {otlpUrl}</code> sends a recorded run.
      </p>
    </section>
  );
}
