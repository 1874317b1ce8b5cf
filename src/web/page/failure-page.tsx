import type { Caller } from '../../api/caller.js';
import { Layout } from './layout.js';

const TITLES: Readonly<Record<number, string>> = {
  403: 'Not allowed',
  404: 'Not found',
  429: 'Too many tries',
  503: 'Not just now',
};

/** What is shown in place of a page: what happened, and what to do. */
export function FailurePage(props: {
  readonly status: number;
  readonly message: string;
  readonly caller: Caller | null;
  readonly version: string;
}) {
  const title = TITLES[props.status] ?? (props.status < 500 ? 'That cannot be done' : 'run-bridge failed');
  return (
    <Layout title={title} caller={props.caller} version={props.version}>
      <h1>{title}</h1>
      <p>{props.message}</p>
      <p>
        <a href="/">All runs</a>
      </p>
    </Layout>
  );
}
