// The bytes of JSON's punctuation.
export const QUOTE: u8 = 0x22;
export const COMMA: u8 = 0x2c;
export const BACKSLASH: u8 = 0x5c;
export const OPEN: u8 = 0x7b;
export const CLOSE: u8 = 0x7d;
export const OPEN_LIST: u8 = 0x5b;
export const CLOSE_LIST: u8 = 0x5d;
