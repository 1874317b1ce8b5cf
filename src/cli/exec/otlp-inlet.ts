import type { RequestListener } from 'node:http';
import type { Clock } from '../../component/clock.js';
import { HostCheck } from '../../component/host-check.js';
import { HttpListener } from '../../component/http-listener.js';
import type { Logger } from '../../component/logger.js';
import { ParkedRequests } from './parked-requests.js';

/**
 * A port of the loopback address for the OTLP of one command. It is open before what reads requests is loaded, so that the
 * command need not wait for that: what engines send is parked, and other requests wait.
 */
export class OtlpInlet {
  /** @throws ListenError */
  static async open(clock: Clock, logger: Logger): Promise<OtlpInlet> {
    let setAnswer: (answer: RequestListener) => void = () => {};
    const answering = new Promise<RequestListener>((resolve) => {
      setAnswer = resolve;
    });
    const parked = new ParkedRequests(clock);
    const address = { host: '127.0.0.1', port: 0, option: '--http HOST:PORT' };
    const config = { ...address, hosts: new HostCheck(), handlerContinues: true };
    const listener = new HttpListener(
      config,
      (request, response) => {
        if (!parked.park(request, response)) void answering.then((answer) => answer(request, response));
      },
      logger,
    );
    await listener.start();
    return new OtlpInlet(listener, parked, setAnswer);
  }

  private constructor(
    private readonly listener: HttpListener,
    /** Requests that are answered already. */
    readonly parked: ParkedRequests,
    /** Says what answers the others; to be called once. */
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
