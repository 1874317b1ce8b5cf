/** The process's environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The value of a variable; an empty one counts as unset, as OpenTelemetry has it. */
export function nonEmpty(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === '' ? undefined : text;
}
