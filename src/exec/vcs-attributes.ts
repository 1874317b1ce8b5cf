import { type Environment, nonEmpty } from '../config/environment.js';

/** The code that a command runs, as its CI system names it; what it does not say is `undefined`. */
interface Checkout {
  readonly repository: string | undefined;
  readonly revision: string | undefined;
  readonly branch: string | undefined;
  /** Counts before a branch. */
  readonly tag: string | undefined;
}

/** CI systems by a variable that only they set, with what their other variables say. */
const SYSTEMS: readonly (readonly [
  variable: string,
  read: (value: (name: string) => string | undefined) => Checkout,
])[] = [
  // https://docs.github.com/actions/reference/variables-reference
  [
    'GITHUB_ACTIONS',
    (value) => {
      const [server, repository, ref] = [
        value('GITHUB_SERVER_URL'),
        value('GITHUB_REPOSITORY'),
        value('GITHUB_REF_NAME'),
      ];
      const isTag = value('GITHUB_REF_TYPE') === 'tag';
      return {
        repository: server === undefined || repository === undefined ? undefined : `${server}/${repository}`,
        // Of a pull request this is a merge, which is not on its branch; so is what the ref names.
        revision: value('GITHUB_HEAD_REF') === undefined ? value('GITHUB_SHA') : undefined,
        branch: value('GITHUB_HEAD_REF') ?? (isTag ? undefined : ref),
        tag: isTag ? ref : undefined,
      };
    },
  ],
  // https://docs.gitlab.com/ci/variables/predefined_variables
  [
    'GITLAB_CI',
    (value) => ({
      repository: value('CI_PROJECT_URL'),
      revision: value('CI_COMMIT_SHA'),
      branch: value('CI_COMMIT_BRANCH') ?? value('CI_MERGE_REQUEST_SOURCE_BRANCH_NAME'),
      tag: value('CI_COMMIT_TAG'),
    }),
  ],
  // https://support.atlassian.com/bitbucket-cloud/docs/variables-and-secrets
  [
    'BITBUCKET_BUILD_NUMBER',
    (value) => ({
      repository: value('BITBUCKET_GIT_HTTP_ORIGIN'),
      revision: value('BITBUCKET_COMMIT'),
      branch: value('BITBUCKET_BRANCH'),
      tag: value('BITBUCKET_TAG'),
    }),
  ],
  // https://learn.microsoft.com/azure/devops/pipelines/build/variables
  [
    'TF_BUILD',
    (value) => {
      const ref = value('SYSTEM_PULLREQUEST_SOURCEBRANCH') ?? value('BUILD_SOURCEBRANCH') ?? '';
      return {
        repository: value('BUILD_REPOSITORY_URI'),
        revision: value('SYSTEM_PULLREQUEST_SOURCECOMMITID') ?? value('BUILD_SOURCEVERSION'),
        branch: behind(ref, 'refs/heads/'),
        tag: behind(ref, 'refs/tags/'),
      };
    },
  ],
  // https://circleci.com/docs/variables
  [
    'CIRCLECI',
    (value) => ({
      repository: value('CIRCLE_REPOSITORY_URL'),
      revision: value('CIRCLE_SHA1'),
      branch: value('CIRCLE_BRANCH'),
      tag: value('CIRCLE_TAG'),
    }),
  ],
  // https://buildkite.com/docs/pipelines/configure/environment-variables
  [
    'BUILDKITE',
    (value) => ({
      repository: value('BUILDKITE_REPO'),
      revision: value('BUILDKITE_COMMIT'),
      branch: value('BUILDKITE_BRANCH'),
      tag: value('BUILDKITE_TAG'),
    }),
  ],
  // https://plugins.jenkins.io/git
  [
    'JENKINS_URL',
    (value) => ({
      repository: value('GIT_URL'),
      revision: value('GIT_COMMIT'),
      branch: value('GIT_LOCAL_BRANCH') ?? behind(value('GIT_BRANCH') ?? '', 'origin/'),
      tag: value('TAG_NAME'),
    }),
  ],
];

/** What needs no encoding in OTEL_RESOURCE_ATTRIBUTES, which engines read without decoding it. */
const PLAIN = /^[\w.:/@~+-]{1,500}$/;
const REVISION = /^[0-9a-f]{7,64}$/i;

/** What a CI system says in its variables of the code that a command runs, by OpenTelemetry's names for resource attributes. */
export function vcsAttributes(environment: Environment): Readonly<Record<string, string>> {
  const value = (name: string) => nonEmpty(environment[name]);
  const checkout = SYSTEMS.find(([variable]) => value(variable) !== undefined)?.[1](value);
  if (checkout === undefined) return {};
  const { repository, revision, branch, tag } = checkout;
  const name = tag ?? branch;
  const attributes = {
    'vcs.repository.url.full': repository === undefined ? undefined : canonicalUrl(repository),
    'vcs.ref.head.name': name,
    'vcs.ref.head.type': name === undefined || !PLAIN.test(name) ? undefined : tag === undefined ? 'branch' : 'tag',
    'vcs.ref.head.revision': revision !== undefined && REVISION.test(revision) ? revision : undefined,
  };
  return Object.fromEntries(
    Object.entries(attributes).flatMap(([key, text]) => (text !== undefined && PLAIN.test(text) ? [[key, text]] : [])),
  );
}

/** The address of a repository for browsers, without a password; `undefined` for another protocol. */
function canonicalUrl(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 'https:' && url?.protocol !== 'http:') return undefined;
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(/\.git$/, '')}`;
}

function behind(text: string, prefix: string): string | undefined {
  return text.startsWith(prefix) ? nonEmpty(text.slice(prefix.length)) : undefined;
}
