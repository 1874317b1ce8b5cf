/** The path of the bridge's native API, on both of its ports. */
export const API_PATH = '/api/run-bridge/v1';
