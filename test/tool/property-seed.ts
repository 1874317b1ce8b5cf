import fc from 'fast-check';

// Properties are tried with the same cases every time, so that a test that fails was broken by the change under test.
// PROPERTY_SEED=random tries others (a failure prints its seed), PROPERTY_SEED=N those of an earlier run.
const { PROPERTY_SEED = '1' } = process.env;
if (PROPERTY_SEED !== 'random') fc.configureGlobal({ seed: Number(PROPERTY_SEED) });
