/** Name of the folder of spooled commands in the data folder; each has a folder of its own there. */
export const SPOOL_FOLDER = 'spool';

/** The engine's JSONL in a command's folder. */
export const ENGINE_FILE = 'otel.jsonl';
/** What OTLP brought and was not appended yet, as OTLP JSON lines, in a command's folder. */
export const SPOOLED_OTLP_FILE = 'otel.otlp.jsonl';
/** What is known of the command, in its folder. */
export const ENTRY_FILE = 'command.json';
