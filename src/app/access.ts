import { Authenticator, newSecret } from '../api/authenticator.js';
import { SENDER } from '../api/caller.js';
import { FailedTries } from '../api/failed-tries.js';
import { OpenGate } from '../api/open-gate.js';
import { SignInLinks } from '../api/sign-in-links.js';
import { TokenGate } from '../api/token-gate.js';
import type { Configuration } from '../config/configuration.js';
import type { Clock } from '../core/clock.js';
import { isLoopback } from '../core/http-listener.js';
import type { Logger } from '../core/logger.js';
import type { SenderGate } from '../core/sender-gate.js';
import type { TokenStore } from '../storage/account-store.js';

/** What access is decided with. */
export interface AccessDeps {
  readonly tokens: Pick<TokenStore, 'findGood' | 'noteUse' | 'exchangeLink'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The permissions of senders at each of the program's addresses. */
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
   * The environment that commands under `exec` need to send to an address of this program: a token that is
   * valid as long as the program runs, has the permissions of senders, and is kept only in memory. Empty where no token is required.
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

  /** Decides who may send telemetry to an address, and for which account. @param host that it listens on */
  gateAt(host: string): SenderGate {
    return this.isOpen(host) ? this.openGate : this.tokenGate;
  }
}
