import type { RequestListener } from 'node:http';
import { HttpListener } from '../../component/http-listener.js';
import type { Logger } from '../../component/logger.js';

/**
 * A port of the loopback address for the OTLP of one command. It is open before what answers there is loaded, so that the
 * command need not wait for that; requests do.
 */
export class OtlpInlet {
  /** @throws ListenError */
  static async open(logger: Logger): Promise<OtlpInlet> {
    let setAnswer: (answer: RequestListener) => void = () => {};
    const answering = new Promise<RequestListener>((resolve) => {
      setAnswer = resolve;
    });
    const config = { host: '127.0.0.1', port: 0, option: '--http HOST:PORT', handlerContinues: true };
    const listener = new HttpListener(
      config,
      (request, response) => void answering.then((answer) => answer(request, response)),
      logger,
    );
    await listener.start();
    return new OtlpInlet(listener, setAnswer);
  }

  private constructor(
    private readonly listener: HttpListener,
    /** Says what answers; to be called once. */
    readonly answerWith: (answer: RequestListener) => void,
  ) {}

  get url(): string {
    return this.listener.address.url;
  }

  /** Finishes the requests under way. */
  close(deadline: AbortSignal): Promise<void> {
    return this.listener.shutdown(deadline);
  }
}
