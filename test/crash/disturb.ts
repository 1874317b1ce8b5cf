import { setTimeout as pause } from 'node:timers/promises';
import { until } from '../tool/until.js';
import type { ClusterStage, StagedProcess } from './cluster-stage.js';
import type { SeededRandom } from './seeded-random.js';

/** Something that goes wrong, or changes, while several processes work. */
interface Disturbance {
  /** @returns what is done, in words, and its end; nothing where it cannot be done just now */
  begin(scene: Scene): Begun | undefined;
}

interface Begun {
  readonly what: string;
  /** Where it is a process that it happens to. */
  readonly one?: StagedProcess;
  readonly done: Promise<void>;
}

interface Scene {
  readonly stage: ClusterStage;
  readonly random: SeededRandom;
  /** Processes that are not as they should be, or about to be. */
  readonly away: Set<StagedProcess>;
  /** Names of what hangs, or is not there. */
  readonly outages: Set<string>;
}

/** Longer than a session and its taking over. */
const ABSENCE_MS = [12_000, 20_000] as const;
const OUTAGE_MS = [10_000, 20_000] as const;

/** What may happen to several processes. */
export const DISTURBANCES = [
  'killBuilder',
  'killReceiver',
  'suspendBuilder',
  'endBuilder',
  'joinBuilder',
  'restartBroker',
  'stallBucket',
  'stallDatabase',
] as const;
type DisturbanceName = (typeof DISTURBANCES)[number];

const WAYS: Readonly<Record<DisturbanceName, Disturbance>> = {
  /** A process that builds runs is killed, and comes back at once or after its session. */
  killBuilder: {
    begin: (scene) => {
      const { random } = scene;
      const isLong = random.next() < 0.4;
      const backMs = isLong ? random.between(...ABSENCE_MS) : random.between(0, 1_000);
      return kill(scene, pick(scene, scene.stage.processes), backMs);
    },
  },
  killReceiver: {
    begin: (scene) => {
      const backMs = scene.random.between(0, 3_000);
      return kill(scene, pick(scene, scene.stage.receivers), backMs);
    },
  },
  /** A process hangs for longer than its session, and then goes on as if nothing had been. */
  suspendBuilder: {
    begin: (scene) => {
      const { random, stage } = scene;
      const one = pick(scene, stage.processes);
      const ms = random.between(...ABSENCE_MS);
      if (one === undefined) return undefined;
      const done = async () => {
        stage.peers.sink.noteKill();
        one.victim.signal('SIGSTOP');
        await pause(ms);
        one.victim.signal('SIGCONT');
      };
      return { one, what: `${one.name} is suspended for ${Math.round(ms)} ms`, done: done() };
    },
  },
  /** A process ends in order, and comes back: two rebalances. */
  endBuilder: {
    begin: (scene) => {
      const { random, stage } = scene;
      const one = pick(scene, stage.processes);
      const ms = random.between(1_000, 8_000);
      if (one === undefined) return undefined;
      const done = async () => {
        stage.peers.sink.noteKill();
        await endInOrder(one);
        await pause(ms);
        await revive(one);
      };
      return { one, what: `${one.name} ends in order, and comes back ${Math.round(ms)} ms later`, done: done() };
    },
  },
  /** One more process joins, and ends in order after a while. */
  joinBuilder: {
    begin: (scene) => {
      const { random, stage } = scene;
      const one = pick(scene, [stage.spare]);
      const ms = random.between(5_000, 15_000);
      if (one === undefined) return undefined;
      const done = async () => {
        await revive(one);
        await pause(ms);
        await endInOrder(one);
      };
      return { one, what: `${one.name} joins for ${Math.round(ms)} ms`, done: done() };
    },
  },
  restartBroker: {
    begin: (scene) => {
      const { kafka } = scene.stage.peers;
      const ms = scene.random.between(0, 6_000);
      return outage(
        scene,
        'Kafka',
        ms,
        () => kafka.kill(),
        () => kafka.resume(),
      );
    },
  },
  stallBucket: {
    begin: (scene) => {
      const { buckets } = scene.stage.peers;
      const ms = scene.random.between(...OUTAGE_MS);
      const each = (action: (proxy: (typeof buckets)[number]) => void) => async () => buckets.forEach(action);
      return outage(
        scene,
        'the bucket',
        ms,
        each((proxy) => proxy.stall()),
        each((proxy) => proxy.resume()),
      );
    },
  },
  stallDatabase: {
    begin: (scene) => {
      const { database } = scene.stage.peers;
      const ms = scene.random.between(...OUTAGE_MS);
      return outage(
        scene,
        'the database',
        ms,
        async () => database.stall(),
        async () => database.resume(),
      );
    },
  },
};

/**
 * Disturbs a stage in each of some ways once, in their order, each when the one before it is over.
 * @returns a function that says what was done, in words
 */
export function disturbInTurn(names: readonly DisturbanceName[]) {
  return async (stage: ClusterStage, random: SeededRandom): Promise<readonly string[]> => {
    const scene = { stage, random, away: new Set<StagedProcess>(), outages: new Set<string>() };
    const said: string[] = [];
    for (const name of names) {
      const begun = WAYS[name].begin(scene);
      if (begun === undefined) throw new Error(`there is nothing for ${name}`);
      said.push(begun.what);
      await begun.done;
      if (begun.one !== undefined) scene.away.delete(begun.one);
    }
    return said;
  };
}

/**
 * Disturbs a stage in each of some ways once, in random order, and again as long as something goes on. One may begin while another
 * lasts; nothing happens to a process that is away already.
 * @returns a function that says what was done, in words
 */
export function disturbAtRandom(names: readonly DisturbanceName[], gapMs: readonly [number, number]) {
  return async (stage: ClusterStage, random: SeededRandom, isGoingOn: () => boolean): Promise<readonly string[]> => {
    const scene = { stage, random, away: new Set<StagedProcess>(), outages: new Set<string>() };
    const said: string[] = [];
    const underWay: Promise<void>[] = [];
    const failures: unknown[] = [];
    const startedMs = performance.now();
    do {
      for (const name of random.shuffle(names)) {
        await pause(random.between(...gapMs));
        if (failures.length > 0) break;
        const begun = WAYS[name].begin(scene);
        if (begun === undefined) continue;
        said.push(`${Math.round(performance.now() - startedMs)} ms: ${begun.what}`);
        const { one, done } = begun;
        underWay.push(
          done.then(
            () => void (one !== undefined && scene.away.delete(one)),
            (error: unknown) => void failures.push(error),
          ),
        );
      }
    } while (failures.length === 0 && isGoingOn());
    await Promise.all(underWay);
    if (failures.length > 0) throw new Error(`after ${said.join('; ')}`, { cause: failures[0] });
    return said;
  };
}

function kill(scene: Scene, one: StagedProcess | undefined, backMs: number): Begun | undefined {
  if (one === undefined) return undefined;
  const done = async () => {
    scene.stage.peers.sink.noteKill();
    await one.victim.end('SIGKILL');
    await pause(backMs);
    await revive(one);
  };
  return { one, what: `${one.name} is killed, and comes back ${Math.round(backMs)} ms later`, done: done() };
}

function outage(
  { outages }: Scene,
  name: string,
  ms: number,
  begin: () => Promise<void>,
  end: () => Promise<void>,
): Begun | undefined {
  if (outages.has(name)) return undefined;
  outages.add(name);
  const done = async () => {
    await begin();
    await pause(ms);
    await end();
    outages.delete(name);
  };
  return { what: `${name} is away for ${Math.round(ms)} ms`, done: done() };
}

/** One that is as it should be, which it is not any more: whoever picks it brings it back. */
function pick({ random, away }: Scene, list: readonly StagedProcess[]): StagedProcess | undefined {
  const first = Math.floor(random.next() * list.length);
  const one = [...list.slice(first), ...list.slice(0, first)].find((each) => !away.has(each));
  if (one === undefined) return undefined;
  away.add(one);
  const { victim } = one;
  // The spare one has not been started.
  if (victim.pid !== 0 && !victim.isAlive && victim.exitCode !== 0) {
    throw new Error(`${one.name} has ended by itself with ${victim.exitCode}: ${victim.log.slice(-3_000)}`);
  }
  return one;
}

async function endInOrder({ name, victim }: StagedProcess): Promise<void> {
  let exitCode: number | null | undefined;
  void victim.end('SIGTERM').then((code) => {
    exitCode = code;
  });
  await until(`the end of ${name}`, () => exitCode !== undefined);
  if (exitCode !== 0) throw new Error(`${name} has ended with ${exitCode}, not 0: ${victim.log.slice(-3_000)}`);
}

/** Starts a process again and again, as what supervises it does: it ends with a message while the database does not answer. */
async function revive({ name, victim }: StagedProcess): Promise<void> {
  const isReady = async () => {
    victim.spawn();
    return await victim.ready().then(
      () => true,
      () => false,
    );
  };
  await until(`${name} to be ready`, isReady);
}
