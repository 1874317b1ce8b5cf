/** The cookie that has a browser's token. */
export const PAGE_COOKIE = 'run_bridge_token';
