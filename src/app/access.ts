import { Authenticator } from '../api/authenticator.js';
import { SENDER } from '../api/caller.js';
import { FailedTries } from '../api/failed-tries.js';
import { OpenGate } from '../api/open-gate.js';
import { TokenGate } from '../api/token-gate.js';
import { newSecret } from '../api/token-secret.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { isLoopback } from '../core/is-loopback.js';
import type { Logger } from '../core/logger.js';
import type { SenderGate } from '../receiver/sender-gate.js';
import type { TokenStore } from '../storage/token-store.js';

/** What access is decided with. */
export interface AccessDeps {
  readonly tokens: Pick<TokenStore, 'findGood' | 'noteUse'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Who may do what at which of the program's addresses. */
export class Access {
  readonly authenticator: Authenticator;
  private readonly tokenGate: SenderGate;
  private readonly openGate: SenderGate;
  private commandToken: string | undefined;

  constructor(
    private readonly auth: Configuration['otlp-auth'],
    deps: AccessDeps,
  ) {
    this.authenticator = new Authenticator({ ...deps, tries: new FailedTries(deps.clock) });
    this.tokenGate = new TokenGate(this.authenticator);
    this.openGate = new OpenGate(this.authenticator);
  }

  /**
   * What `exec` of this program's own commands needs in its environment to hand over to an address of it: a token that is
   * good as long as the program runs, may do what senders may, and is kept in memory alone. Nothing where none is asked for.
   */
  credentialsFor(host: string): Readonly<Record<string, string>> {
    if (this.isOpen(host)) return {};
    if (this.commandToken === undefined) {
      this.commandToken = newSecret();
      this.authenticator.grant(this.commandToken, { ...SENDER });
    }
    return { RUN_BRIDGE_TOKEN: this.commandToken };
  }

  /** Whether an address takes telemetry without a token. @param host that it listens on */
  isOpen(host: string): boolean {
    return this.auth === 'none' || (this.auth === 'auto' && isLoopback(host));
  }

  /** What says who may send telemetry to an address, and whose it is. @param host that it listens on */
  gateAt(host: string): SenderGate {
    return this.isOpen(host) ? this.openGate : this.tokenGate;
  }
}
