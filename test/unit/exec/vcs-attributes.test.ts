import { expect, it } from 'vitest';
import { vcsAttributes } from '../../../src/exec/vcs-attributes.js';

const SHA = '9d59409acf479dfa0df1aa568182e43e43df8bbe';
const NAMES = ['vcs.repository.url.full', 'vcs.ref.head.name', 'vcs.ref.head.type', 'vcs.ref.head.revision'];

const said = (environment: Readonly<Record<string, string>>) => {
  const attributes = vcsAttributes(environment);
  return NAMES.map((name) => attributes[name]);
};

it.each<[string, Readonly<Record<string, string>>, readonly (string | undefined)[]]>([
  [
    'a push on GitHub',
    {
      ...{ GITHUB_ACTIONS: 'true', GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/shop' },
      ...{ GITHUB_REF_NAME: 'main', GITHUB_REF_TYPE: 'branch', GITHUB_HEAD_REF: '', GITHUB_SHA: SHA },
    },
    ['https://github.com/acme/shop', 'main', 'branch', SHA],
  ],
  [
    'a pull request on GitHub',
    {
      ...{ GITHUB_ACTIONS: 'true', GITHUB_SERVER_URL: 'https://github.com', GITHUB_REPOSITORY: 'acme/shop' },
      ...{ GITHUB_REF_NAME: '12/merge', GITHUB_REF_TYPE: 'branch', GITHUB_HEAD_REF: 'fix/orders', GITHUB_SHA: SHA },
    },
    ['https://github.com/acme/shop', 'fix/orders', 'branch', undefined],
  ],
  [
    'a tag on GitLab',
    {
      ...{ GITLAB_CI: 'true', CI_PROJECT_URL: 'https://gitlab.example.com/a/b/shop', CI_COMMIT_SHA: SHA },
      CI_COMMIT_TAG: 'v1.2.0',
    },
    ['https://gitlab.example.com/a/b/shop', 'v1.2.0', 'tag', SHA],
  ],
  [
    'a merge request on GitLab',
    { GITLAB_CI: 'true', CI_COMMIT_SHA: SHA, CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'fix' },
    [undefined, 'fix', 'branch', SHA],
  ],
  [
    'Bitbucket',
    {
      ...{ BITBUCKET_BUILD_NUMBER: '7', BITBUCKET_GIT_HTTP_ORIGIN: 'http://bitbucket.org/acme/shop' },
      ...{ BITBUCKET_COMMIT: SHA, BITBUCKET_BRANCH: 'main' },
    },
    ['http://bitbucket.org/acme/shop', 'main', 'branch', SHA],
  ],
  [
    'Azure, whose address has a user',
    {
      ...{ TF_BUILD: 'True', BUILD_REPOSITORY_URI: 'https://acme:secret@dev.azure.com/acme/shop/_git/shop' },
      ...{ BUILD_SOURCEBRANCH: 'refs/tags/v2', BUILD_SOURCEVERSION: SHA },
    },
    ['https://dev.azure.com/acme/shop/_git/shop', 'v2', 'tag', SHA],
  ],
  [
    'a pull request on Azure',
    {
      ...{ TF_BUILD: 'True', BUILD_SOURCEBRANCH: 'refs/pull/3/merge', BUILD_SOURCEVERSION: SHA },
      SYSTEM_PULLREQUEST_SOURCEBRANCH: 'refs/heads/fix',
    },
    [undefined, 'fix', 'branch', SHA],
  ],
  [
    'CircleCI, which clones by ssh',
    {
      CIRCLECI: 'true',
      CIRCLE_REPOSITORY_URL: 'git@github.com:acme/shop.git',
      CIRCLE_SHA1: SHA,
      CIRCLE_BRANCH: 'main',
    },
    [undefined, 'main', 'branch', SHA],
  ],
  [
    'Buildkite, before it knows the commit',
    {
      ...{ BUILDKITE: 'true', BUILDKITE_REPO: 'https://github.com/acme/shop.git', BUILDKITE_COMMIT: 'HEAD' },
      ...{ BUILDKITE_BRANCH: 'main', BUILDKITE_TAG: '' },
    },
    ['https://github.com/acme/shop', 'main', 'branch', undefined],
  ],
  [
    'Jenkins',
    {
      ...{ JENKINS_URL: 'https://ci.example.com/', GIT_URL: 'https://x:y@git.example.com/shop.git?z=1' },
      ...{ GIT_COMMIT: SHA, GIT_BRANCH: 'origin/main' },
    },
    ['https://git.example.com/shop', 'main', 'branch', SHA],
  ],
  [
    'a branch whose name would have to be encoded',
    { GITLAB_CI: 'true', CI_COMMIT_SHA: SHA, CI_COMMIT_BRANCH: 'a=b,c' },
    [undefined, undefined, undefined, SHA],
  ],
  ['no CI system', { GIT_COMMIT: SHA, GIT_BRANCH: 'main' }, [undefined, undefined, undefined, undefined]],
])('%s says which code a command runs', (_, environment, expected) => {
  expect(said(environment)).toEqual(expected);
});
