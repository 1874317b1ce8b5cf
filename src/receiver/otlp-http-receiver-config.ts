import type { HttpListenerConfig } from '../component/http-listener.js';

/** The receiver's address; time-outs and connections as in `HttpListenerConfig`. */
export type OtlpHttpReceiverConfig = Omit<HttpListenerConfig, 'option' | 'handlerContinues'>;
