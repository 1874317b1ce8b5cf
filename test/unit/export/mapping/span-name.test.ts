import { describe, expect, it } from 'vitest';
import { stableSpanName } from '../../../../src/export/mapping/exported-names.js';

describe('a span name', () => {
  it.each([
    ['dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', 'invocation.Invocation', 'dbt invocation'],
    ['Phase: RUN (nodes: 21)', 'phase.PhaseExecuted', 'Phase: RUN'],
    ['Phase: PARSE', 'phase.PhaseExecuted', 'Phase: PARSE'],
    ['Installing 3 packages', 'deps.DepsAllPackagesInstalled', 'Installing packages'],
    ['Installing 1 package(s)', 'deps.DepsAllPackagesInstalled', 'Installing packages'],
    [
      'Connection limit wait (4 active nodes) (8 active connections)',
      'query.ConnectionLimitWait',
      'Connection limit wait',
    ],
    ['Thread pool wait', 'process.ThreadPoolWait', 'Thread pool wait'],
    ['GenericOp: clone (12 items)', 'generic.GenericOpExecuted', 'GenericOp: clone'],
    ['Dev trace: execute (src/a.rs:12)', 'dev.CallTrace', 'Dev trace: execute'],
    ['Update: dbt -> 2.1.0', 'update.PackageUpdate', 'Update: dbt'],
    ['Node processed (model.shop.orders)', 'node.NodeProcessed', 'Node processed (model.shop.orders)'],
    ['Asset parsed (a.yml:2:11 (snap))', 'asset.AssetParsed', 'Asset parsed (a.yml:2:11 (snap))'],
    ['New (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', 'new.Thing', 'New (*)'],
    ['New (12 things)', 'new.Thing', 'New'],
  ])('%s loses what changes from run to run', (name, type, expected) => {
    expect(stableSpanName(name, `v1.public.events.fusion.${type}`, undefined)).toBe(expected);
  });

  it('says the command of an invocation', () => {
    const type = 'v1.public.events.fusion.invocation.Invocation';
    expect(stableSpanName('dbt invocation (01a1fb8e-a78d-7281-ae8c-1be536b674cd)', type, 'build')).toBe(
      'dbt invocation (build)',
    );
  });
});
