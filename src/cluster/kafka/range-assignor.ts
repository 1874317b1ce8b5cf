import type { GroupPartitionsAssigner } from '@platformatic/kafka';

/**
 * Kafka's range assignor: each topic's partitions are cut into consecutive ranges, one for each member in the order of their
 * ids. With the same number of partitions in each topic, the same member has partition 3 of all of them, and so the spans and
 * the log records of a run.
 */
export const rangeAssignor: GroupPartitionsAssigner = (_current, members, topics, { topics: known }) => {
  const assigned = [...members.keys()].sort().map((memberId) => ({ memberId, assignments: new Map() }));
  for (const topic of topics) {
    const readers = assigned.filter(({ memberId }) => members.get(memberId)?.topics?.includes(topic));
    const count = known.get(topic)?.partitionsCount ?? 0;
    const least = Math.floor(count / readers.length);
    const moreCount = count % readers.length;
    for (const [index, { assignments }] of readers.entries()) {
      const first = index * least + Math.min(index, moreCount);
      const length = least + (index < moreCount ? 1 : 0);
      if (length > 0) assignments.set(topic, { topic, partitions: Array.from({ length }, (_, at) => first + at) });
    }
  }
  return assigned;
};
