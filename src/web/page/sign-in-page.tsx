import { Layout } from './layout.js';

/** What the page for signing in shows. */
export interface SignInProps {
  /** Where to go afterwards: a path of this server. */
  readonly to: string;
  /** Why the last try did not do; `null` where there was none. */
  readonly problem: string | null;
  readonly version: string;
}

/** Takes a token. */
export function SignInPage({ to, problem, version }: SignInProps) {
  return (
    <Layout title="Sign in" caller={null} version={version}>
      <div class="narrow">
        <h1>Sign in</h1>
        {problem !== null && (
          <p class="notice bad" role="alert">
            {problem}
          </p>
        )}
        <form method="post" action="/sign-in" class="stack">
          <input type="hidden" name="to" value={to} />
          <label for="token">Token</label>
          <input
            id="token"
            name="token"
            type="password"
            autocomplete="current-password"
            spellcheck={false}
            required
            autofocus
          />
          <button type="submit">Sign in</button>
        </form>
        <p>
          The first start left a token in the file <code>admin-token</code> of the data folder. This makes another one,
          which may look and change nothing:
        </p>
        <pre class="command" tabindex={0}>
          run-bridge token create --name me --permission read_only
        </pre>
        <p class="hint">
          The token stays in this browser for a week, in a cookie that no script can read.{' '}
          {to !== '/' && <a href={to}>Signed in already? Go on.</a>}
        </p>
      </div>
    </Layout>
  );
}
