import { CliError, EXIT } from '../cli/command.js';
import { nearestName } from '../config/suggestion.js';
import { harmlessJson } from '../core/text.js';
import { comparisonDocument, measuresDocument } from '../run/measures/measures-document.js';
import type { CommandReport, ReportSetting, ReportWriter } from './content.js';
import { REPORT_FORMATS } from './format-names.js';

/** A format of reports. */
export interface ReportFormat {
  /** Whether it goes to systems elsewhere, so that the setting `redaction` applies to it. */
  readonly isRedacted: boolean;
  /** Whether it shows what is different from another run. */
  readonly isCompared?: true;
  /** Loads what writes it. */
  writer(): Promise<ReportWriter>;
}

/** Formats by the names that `--format` and `--report` take. */
const FORMATS: Readonly<Record<(typeof REPORT_FORMATS)[number], ReportFormat>> = {
  text: { isRedacted: false, isCompared: true, writer: async () => (await import('./text.js')).textReport },
  json: { isRedacted: false, writer: async () => jsonReport },
  markdown: { isRedacted: true, isCompared: true, writer: async () => (await import('./github.js')).markdownReport },
  github: { isRedacted: true, isCompared: true, writer: async () => (await import('./github.js')).githubReport },
  junit: { isRedacted: true, writer: async () => (await import('./junit.js')).junitReport },
  html: { isRedacted: true, writer: async () => (await import('./html.js')).htmlReport },
  perfetto: { isRedacted: true, writer: async () => (await import('./perfetto.js')).perfettoReport },
};

/** The format of that name. @throws CliError for a name that is none */
export function formatOf(name: string, flag: string): ReportFormat {
  const known = REPORT_FORMATS.find((one) => one === name);
  if (known !== undefined) return FORMATS[known];
  const near = nearestName(name, REPORT_FORMATS);
  const hint = near === undefined ? REPORT_FORMATS.join(', ') : `did you mean ${near}?`;
  throw new CliError(EXIT.usage, `${flag}: ${JSON.stringify(name)} is no format; ${hint}`);
}

/** A report that `exec` writes when its command ends. */
export interface ReportOutput {
  readonly format: ReportFormat;
  /** `null` for standard error. */
  readonly path: string | null;
}

/** Reads `text,junit=PATH,html=PATH`. @throws CliError */
export function parseReportOutputs(list: string): readonly ReportOutput[] {
  return list.split(',').map((part) => {
    const [name = ''] = part.split('=', 1);
    const path = part.slice(name.length + 1);
    if (part.includes('=') && path === '') throw new CliError(EXIT.usage, `--report: ${part} names no file`);
    return { format: formatOf(name.trim(), '--report'), path: path === '' ? null : path };
  });
}

function jsonReport(reports: readonly CommandReport[], _setting: ReportSetting): string {
  const commands = reports.map(({ command, traceId, comparison }) => ({
    ...measuresDocument(command, traceId),
    comparison: comparison && comparisonDocument(comparison),
  }));
  return `${harmlessJson(JSON.stringify({ commands }, null, 2))}\n`;
}
