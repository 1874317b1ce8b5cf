/** Where the program's metrics are, on the port for people and tools, behind the same tokens as the API. */
export const METRICS_PATH = '/metrics';
