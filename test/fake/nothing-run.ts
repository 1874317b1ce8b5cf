/** Stands for what runs jobs, which is tried with the whole program: here nothing is run. */
export const NOTHING_RUN = {
  open: () => Promise.reject(new Error('nothing is run here')),
  outputOf: async () => undefined,
};
