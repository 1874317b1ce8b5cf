/** Name of the folder of spooled commands in the data folder; each has a folder of its own there. */
export const SPOOL_FOLDER = 'spool';

/** The engine's JSONL in a command's folder. */
export const ENGINE_FILE = 'otel.jsonl';
