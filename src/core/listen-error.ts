/** Why a port could not be opened. */
export type ListenErrorCode = 'in_use' | 'not_permitted' | 'bad_address' | 'failed';

/** A port could not be opened; the message is one line that says how to fix it, printed before exit code 2. */
export class ListenError extends Error {
  override readonly name = 'ListenError';
  constructor(
    readonly code: ListenErrorCode,
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }

  /**
   * @param where host and port as they were asked for.
   * @param option how another address is chosen, for example `--http HOST:PORT`.
   */
  static from(cause: unknown, where: string, option: string): ListenError {
    switch (systemCode(cause)) {
      case 'EADDRINUSE':
        return new ListenError(
          'in_use',
          `${where} is in use by another program; stop it or choose another port with ${option}`,
          { cause },
        );
      case 'EACCES':
      case 'EPERM':
        return new ListenError(
          'not_permitted',
          `${where} may not be opened by this user; choose a port above 1023 with ${option}`,
          { cause },
        );
      case 'EADDRNOTAVAIL':
      case 'EAFNOSUPPORT':
      case 'EINVAL':
      case 'ENOTFOUND':
      case 'EAI_AGAIN':
        return new ListenError(
          'bad_address',
          `${where} is not an address of this machine; choose one, for example 127.0.0.1, with ${option}`,
          { cause },
        );
      case 'ERR_SOCKET_BAD_PORT':
        return new ListenError(
          'bad_address',
          `${where}: a port is a number from 0 to 65535; choose it with ${option}`,
          {
            cause,
          },
        );
      default:
        return new ListenError(
          'failed',
          `${where} could not be opened (${String(cause)}); choose another address with ${option}`,
          { cause },
        );
    }
  }
}

function systemCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
