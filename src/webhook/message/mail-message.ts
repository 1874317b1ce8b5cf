import type { RunMessage } from './run-message.js';

/** A message as plain mail. */
export function mailMessage({ title, facts, sections, url }: RunMessage): {
  readonly subject: string;
  readonly text: string;
} {
  const lines = [
    title,
    '',
    ...facts.map(([name, value]) => `${name}: ${value}`),
    ...sections.flatMap((one) => [
      '',
      `${one.title}${one.lines.length > 0 ? ':' : ''}`,
      ...one.lines.map((line) => `  ${line}`),
    ]),
    ...(url === null ? [] : ['', url]),
  ];
  // Line breaks in a subject would begin another header.
  return { subject: title.replaceAll(/\s+/g, ' ').slice(0, 200), text: `${lines.join('\n')}\n` };
}
