/** Fields of a log line; never attribute values of telemetry, never secrets. */
export type LogFields = Readonly<Record<string, string | number | boolean | null | undefined>>;

/** The program's log: a constant message and fields. pino implements it. */
export interface Logger {
  debug(fields: LogFields, message: string): void;
  info(fields: LogFields, message: string): void;
  warn(fields: LogFields, message: string): void;
  error(fields: LogFields, message: string): void;
}

/** A logger without output, for commands that log nothing. */
export const silentLogger: Logger = { debug() {}, info() {}, warn() {}, error() {} };
