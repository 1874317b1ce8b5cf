import { resolve } from 'node:path';

/** What reading a setting's text needs beyond the text. */
export interface SettingContext {
  /** Folder that relative paths start from: the working directory, or the configuration file's folder. */
  readonly baseDir: string;
  /** What `~/` stands for. */
  readonly homeDir: string;
}

/** One setting: a line of `run-bridge.yaml`, a flag and an environment variable of the same name. */
export interface Setting<T> {
  /** What stands for the value in help texts, for example `HOST:PORT`. */
  readonly placeholder: string;
  /** One line for help texts and the documentation. */
  readonly summary: string;
  /** What the value must look like, to end the sentence "is not …". */
  readonly expected: string;
  /** The default's text; `null` where it is no fixed text. */
  readonly defaultText: string | null;
  /** Whether the text may contain a secret, and is not shown when it is wrong. */
  readonly isSecret?: true;
  /** A variable that other programs use as well, below the setting's own one; passed over where it is not meant for this one. */
  readonly sharedVariable?: { readonly name: string; isMeant(text: string): boolean };
  /** `undefined` when the text is not what is expected. */
  parse(text: string, context: SettingContext): T | undefined;
  /** The value as text that `parse` reads, but for secrets in it, which are masked. */
  format(value: T): string;
}

/** A setting that is one of a few words. */
export function choiceSetting<const T extends string>(
  choices: readonly T[],
  defaultText: T,
  summary: string,
): Setting<T> {
  return {
    placeholder: choices.join('|'),
    summary,
    expected: `one of ${choices.join(', ')}`,
    defaultText,
    parse: (text) => choices.find((choice) => choice === text.trim().toLowerCase()),
    format: (value) => value,
  };
}

/** A setting that is on or off. */
export function switchSetting(defaultValue: boolean, summary: string): Setting<boolean> {
  return {
    placeholder: 'on|off',
    summary,
    expected: 'on or off',
    defaultText: defaultValue ? 'on' : 'off',
    parse: parseSwitch,
    format: (value) => (value ? 'on' : 'off'),
  };
}

/** Reads `on`, `true`, `yes`, `1` and their opposites. */
export function parseSwitch(text: string): boolean | undefined {
  switch (text.trim().toLowerCase()) {
    case 'on':
    case 'true':
    case 'yes':
    case '1':
      return true;
    case 'off':
    case 'false':
    case 'no':
    case '0':
      return false;
    default:
      return undefined;
  }
}

/** Makes a path absolute; `undefined` for an empty one. */
export function parsePath(text: string, context: SettingContext): string | undefined {
  if (text === '') return undefined;
  if (text === '~') return context.homeDir;
  return resolve(context.baseDir, text.startsWith('~/') ? `${context.homeDir}/${text.slice(2)}` : text);
}

/** Whether the text of a setting is `off`. */
export function isOff(text: string): boolean {
  return text.trim().toLowerCase() === 'off';
}
