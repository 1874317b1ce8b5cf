/** Why an event cannot be found to be sent once more. */
export const NOT_REPLAYABLE = 'it may be older than retain-deliveries-age (7 days by default), or still be tried';
