/** Mapping switches and their defaults. */
export const MAPPING_DEFAULTS: Readonly<Record<string, boolean>> = {};
