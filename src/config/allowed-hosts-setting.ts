import type { Setting } from './setting.js';

const NAME = /^\.?[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?$/;

/** The setting that adds names to those that are answered at loopback addresses. */
export const allowedHostsSetting: Setting<readonly string[]> = {
  placeholder: 'NAMES|off',
  summary:
    'names that requests at loopback addresses may be for, beside localhost, addresses, host.docker.internal, the names of this machine and of public-url, with commas between them; .example.com stands for all below it; others are answered 421; off for none',
  expected: 'off, or names such as runs.example.com or .example.com with commas between them',
  defaultText: 'off',
  parse(text) {
    const words = text.split(',').map((word) => word.trim().toLowerCase());
    if (words.length === 1 && words[0] === 'off') return [];
    return words.every((word) => NAME.test(word)) ? words : undefined;
  },
  format: (value) => (value.length === 0 ? 'off' : value.join(',')),
};
