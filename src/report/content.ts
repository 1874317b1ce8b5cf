import type { SinceTexts } from '../api/failing-since.js';
import { cut } from '../core/text.js';
import type { TraceId } from '../record/telemetry-record.js';
import { type Redactor, statusText } from '../redaction/redactor.js';
import type { CommandComparison } from '../run/measures/compare-commands.js';
import type { NodeMeasure } from '../run/measures/node-measure.js';
import type { CommandMeasures, Comparison } from '../run/measures/run-totals.js';
import type { Verdict } from '../run/verdict.js';

/** The report of one command. */
export interface CommandReport {
  readonly traceId: TraceId;
  readonly command: CommandMeasures;
  /** Commands that share the trace. */
  readonly commandCount: number;
  readonly comparison: Comparison | null;
  /** Since when it fails, in words; left out where that is not known. */
  readonly since?: SinceTexts;
  /** What is different from the same command of another run; left out where it is compared with none. */
  readonly against?: CommandComparison;
}

/** What a report is written for. */
export interface ReportSetting {
  /** Width of the terminal that shows it, in columns; `null` where none does. */
  readonly columns: number | null;
  readonly hasColor: boolean;
  /** The project's folder in the repository, with a slash at its end; empty where they are the same. */
  readonly projectPath: string;
  /** The program's version. */
  readonly version: string;
}

/** Writes reports in one format. */
export type ReportWriter = (reports: readonly CommandReport[], setting: ReportSetting) => string;

/** Longest name and longest text, in characters. */
const MAX_NAME = 300;
const MAX_TEXT = 4_000;

/** A report as it may leave the machine: texts redacted, and none of them longer than people read. */
export function redactedReport(report: CommandReport, redactor: Redactor): CommandReport {
  const { command } = report;
  const { invocation, criticalPath } = command;
  const name = (text: string) => redactor.byPolicy('name', cut(text, MAX_NAME));
  const optional = (text: string | null, show: (text: string) => string) =>
    text === null ? null : show(cut(text, MAX_TEXT));
  const node = (measure: NodeMeasure): NodeMeasure => ({
    ...measure,
    uniqueId: name(measure.uniqueId),
    name: optional(measure.name, name),
    relativePath: optional(measure.relativePath, name),
    group: optional(measure.group, name),
    skipUpstream: optional(measure.skipUpstream, name),
    message: optional(measure.message, (text) => redactor.text(text)),
    failedSql: null,
    diffTable: optional(measure.diffTable, (text) => redactor.diffTable(text)),
  });
  return {
    ...report,
    command: {
      ...command,
      invocation: {
        ...invocation,
        command: optional(invocation.command, (text) => cut(text, MAX_NAME)),
        rawCommand: optional(invocation.rawCommand, (text) => redactor.command(text)),
        statusMessage: optional(invocation.statusMessage, (text) => statusText(text, redactor)),
      },
      nodes: command.nodes.map(node),
      unselectedNodes: command.unselectedNodes.map(node),
      hooks: command.hooks.map((hook) => ({
        ...hook,
        uniqueId: name(hook.uniqueId),
        message: optional(hook.message, (text) => redactor.text(text)),
      })),
      criticalPath: {
        ...criticalPath,
        links: criticalPath.links.map((link) => ({
          ...link,
          step: { ...link.step, uniqueId: optional(link.step.uniqueId, name) },
        })),
      },
      messages: command.messages.map((text) => redactor.text(text)),
    },
  };
}

/** How a command ended, as a sign and words that stand behind its name. */
export function verdictWords(verdict: Verdict | null): { readonly sign: string; readonly words: string } {
  switch (verdict) {
    case 'success':
      return { sign: '✅', words: 'succeeded in' };
    case 'error':
      return { sign: '❌', words: 'failed after' };
    case 'canceled':
      return { sign: '🚫', words: 'was canceled after' };
    case 'lost':
      return { sign: '❓', words: 'has no end; last seen after' };
    case null:
      return { sign: '⏳', words: 'has no end yet; last seen after' };
  }
}
