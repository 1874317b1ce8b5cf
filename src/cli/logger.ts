import type { Writable } from 'node:stream';
import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import type { Configuration } from '../config/configuration.js';
import type { SettingValues } from '../config/settings.js';
import type { Logger } from '../core/logger.js';
import { cleanText, harmlessJson } from '../core/text.js';
import type { ProcessContext } from './command.js';

/** How the program's own log is written. */
export interface LoggerOptions {
  readonly level: SettingValues['log-level'];
  readonly format: SettingValues['log-format'];
  /** Where lines go: standard error. */
  readonly stream: Writable;
  /** Whether a person watches the stream; decides `auto`. */
  readonly isTerminal: boolean;
}

/** The program's log: one JSON object a line for machines, or a short readable line for people. */
export function createLogger(options: LoggerOptions): Logger {
  const isText = options.format === 'text' || (options.format === 'auto' && options.isTerminal);
  const write = (line: string) => void options.stream.write(isText ? cleanText(formatLine(line)) : harmlessJson(line));
  const destination: DestinationStream = { write };
  const settings = { level: options.level, base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const logger: PinoLogger = pino({ ...settings, formatters: { level: (label) => ({ level: label }) } }, destination);
  return {
    debug: (fields, message) => logger.debug(fields, message),
    info: (fields, message) => logger.info(fields, message),
    warn: (fields, message) => logger.warn(fields, message),
    error: (fields, message) => logger.error(fields, message),
  };
}

/** `12:34:56 warn  message  key=value`, of one of pino's JSON lines. */
function formatLine(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as Record<string, unknown>;
  const words = Object.entries(fields).map(([name, value]) => `${name}=${formatValue(value)}`);
  return `${String(time).slice(11, 19)} ${String(level).padEnd(5)} ${[String(msg), ...words].join('  ')}\n`;
}

function formatValue(value: unknown): string {
  const text = String(value);
  return /[\s"=]/.test(text) || text === '' ? JSON.stringify(text) : text;
}

/** The program's logger on standard error, as configured. */
export function loggerOf(
  configuration: Pick<Configuration, 'log-level' | 'log-format'>,
  { stderr, isStderrTerminal }: Pick<ProcessContext, 'stderr' | 'isStderrTerminal'>,
): Logger {
  const { 'log-level': level, 'log-format': format } = configuration;
  return createLogger({ level, format, stream: stderr, isTerminal: isStderrTerminal });
}
