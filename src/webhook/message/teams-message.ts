import type { RunMessage } from './run-message.js';

const COLORS = { good: 'Good', bad: 'Attention', neutral: 'Default' } as const;

/** A message as workflows of Teams take it: an Adaptive Card (https://adaptivecards.io/explorer/AdaptiveCard.html). */
export function teamsMessage({ title, mood, facts, sections, url }: RunMessage) {
  const text = (words: string, more: object = {}) => ({ type: 'TextBlock', text: escaped(words), wrap: true, ...more });
  return {
    type: 'message',
    attachments: [
      {
        contentType: 'application/vnd.microsoft.card.adaptive',
        content: {
          $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
          type: 'AdaptiveCard',
          version: '1.4',
          body: [
            text(title, { weight: 'Bolder', size: 'Medium', color: COLORS[mood] }),
            { type: 'FactSet', facts: facts.map(([name, value]) => ({ title: name, value: escaped(value) })) },
            ...sections.flatMap(({ title: name, lines }) => [
              text(name, { weight: 'Bolder' }),
              ...lines.map((line) => text(`- ${line}`)),
            ]),
          ],
          ...(url !== null && { actions: [{ type: 'Action.OpenUrl', title: 'Open the run', url }] }),
        },
      },
    ],
  };
}

/** Text blocks read Markdown: names with underscores and brackets stay what they are. */
function escaped(text: string): string {
  return text.replaceAll(/[\\*_[\]`]/g, (character) => `\\${character}`);
}
