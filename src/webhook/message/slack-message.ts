import type { RunMessage } from './run-message.js';

/** Slack takes no longer text in one block, in characters. */
const MAX_TEXT_LENGTH = 3_000;

const CIRCLES = { good: ':large_green_circle:', bad: ':red_circle:', neutral: ':white_circle:' } as const;

/** A message as Slack's incoming webhooks take it (https://docs.slack.dev/reference/block-kit/blocks). */
export function slackMessage({ title, mood, facts, sections, url }: RunMessage) {
  const head = `${CIRCLES[mood]} *${escaped(title)}*`;
  const linked = url === null ? head : `${head}  <${url}|open>`;
  const texts = [
    linked,
    facts
      .map(([name, value]) => `${escaped(name)}: ${escaped(value)}`)
      .join('\n')
      .slice(0, MAX_TEXT_LENGTH),
    ...sections.flatMap(({ title: name, lines }) =>
      textsOf([`*${escaped(name)}*`, ...lines.map((line) => `• ${escaped(line)}`)]),
    ),
  ];
  return {
    text: escaped(title),
    blocks: texts.map((text) => ({ type: 'section', text: { type: 'mrkdwn', text } })),
  };
}

/** Puts lines into as few texts as hold them. */
function textsOf(lines: readonly string[]): readonly string[] {
  const texts: string[] = [];
  for (const whole of lines) {
    const line = whole.slice(0, MAX_TEXT_LENGTH);
    const last = texts.at(-1);
    if (last === undefined || last.length + 1 + line.length > MAX_TEXT_LENGTH) texts.push(line);
    else texts[texts.length - 1] = `${last}\n${line}`;
  }
  return texts;
}

/** The three characters that Slack gives a meaning. */
function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
