// Places in a line's cells: `CELL` of src/exporter/lines/line-cells.ts.
export const SPAN: u32 = 0;
export const PARENT: u32 = 2;
export const START_TIME: u32 = 4;
export const END_TIME: u32 = 6;
export const NAME_START: u32 = 8;
export const NAME_END: u32 = 9;
export const STATUS_CODE: u32 = 10;
export const MESSAGE_START: u32 = 11;
export const MESSAGE_END: u32 = 12;
export const EVENT: u32 = 13;
export const LINK_COUNT: u32 = 14;
export const ATTRIBUTE_COUNT: u32 = 15;
export const ROLES: u32 = 16;
export const FIRST_LINK: u32 = 17;
