import { Authenticator, newSecret } from '../api/authenticator.js';
import { SENDER } from '../api/caller.js';
import { FailedTries } from '../api/failed-tries.js';
import { OpenGate, TokenGate } from '../api/sender-gates.js';
import { SignInLinks } from '../api/sign-in-links.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { isLoopback } from '../core/http-listener.js';
import type { Logger } from '../core/logger.js';
import type { SenderGate } from '../core/sender-gate.js';
import type { TokenStore } from '../storage/account-store.js';

/** Dependencies of access control. */
export interface AccessDeps {
  readonly tokens: Pick<TokenStore, 'findGood' | 'noteUse' | 'exchangeLink'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Access control for the program's addresses. */
export class Access {
  readonly authenticator: Authenticator;
  readonly links: SignInLinks;
  private readonly tokenGate: SenderGate;
  private readonly openGate: SenderGate;
  private commandToken: string | undefined;

  constructor(
    private readonly auth: Configuration['otlp-auth'],
    deps: AccessDeps,
  ) {
    const tries = new FailedTries(deps.clock);
    this.authenticator = new Authenticator({ ...deps, tries });
    this.links = new SignInLinks({ ...deps, tries });
    this.tokenGate = new TokenGate(this.authenticator);
    this.openGate = new OpenGate(this.authenticator);
  }

  /**
   * Returns the environment that commands under `exec` need to send to an address of this program: a token for a sender, which is valid as long as the program runs and is kept only in memory. Empty
   * if no token is needed.
   */
  credentialsFor(host: string): Readonly<Record<string, string>> {
    if (this.isOpen(host)) return {};
    if (this.commandToken === undefined) {
      this.commandToken = newSecret();
      this.authenticator.grant(this.commandToken, { ...SENDER });
    }
    return { RUN_BRIDGE_TOKEN: this.commandToken };
  }

  /** Whether an address accepts telemetry without a token. @param host on which it listens */
  isOpen(host: string): boolean {
    return this.auth === 'none' || (this.auth === 'auto' && isLoopback(host));
  }

  /** Returns the gate of an address, which decides who may send telemetry and for which account. @param host on which it listens */
  gateAt(host: string): SenderGate {
    return this.isOpen(host) ? this.openGate : this.tokenGate;
  }
}
