/** What a secret's value is shown as. */
export const MASK = '****';
