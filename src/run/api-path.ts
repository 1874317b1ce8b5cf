/** Where the bridge's own API is, on both of its ports. */
export const API_PATH = '/api/run-bridge/v1';
