/** What a word stands for: its color, and a sign for who does not tell colors apart. */
export type Mood = 'good' | 'bad' | 'busy' | 'neutral';

const SIGNS: Readonly<Record<Mood, string>> = { good: '✓', bad: '✗', busy: '●', neutral: '–' };

/** A status in a word, with its color and sign. */
export function Mark({ word, mood }: { readonly word: string; readonly mood: Mood }) {
  return (
    <span class={`mark ${mood}`}>
      <span aria-hidden="true">{SIGNS[mood]}</span> {word}
    </span>
  );
}
