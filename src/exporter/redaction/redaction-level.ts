/**
 * How much of SQL leaves the machine. `literals` (default): statements stay readable, their literals become `?` and
 * their comments go. `statements`: no SQL at all, a hash instead. `off`: everything as the engine sent it.
 */
export type RedactionLevel = 'literals' | 'statements' | 'off';
