/**
 * Sizes of the engine's queues with which it lost nothing when answers took half a second, as environment variables. Its
 * defaults hold 2,048 items and drop the rest silently.
 */
export const ENGINE_QUEUES = {
  OTEL_BSP_MAX_QUEUE_SIZE: '100000',
  OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4096',
  OTEL_BLRP_MAX_QUEUE_SIZE: '100000',
  OTEL_BLRP_MAX_EXPORT_BATCH_SIZE: '4096',
} as const;
