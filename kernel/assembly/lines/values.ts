// Kinds of values, as src/exporter/lines/line-cells.ts numbers them.
export const PLAIN_TEXT: u32 = 0;
export const OTHER_TEXT: u32 = 1;
export const INTEGER: u32 = 2;
export const TRUE: u32 = 3;
export const FALSE: u32 = 4;
export const NULL: u32 = 5;
export const OTHER: u32 = 6;
