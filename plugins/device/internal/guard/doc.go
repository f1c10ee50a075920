// Package guard checks writes to machines against the limits in the settings, for
// every protocol. Start with [Guards.Permit]. The checks of [Rule] cannot be changed by a
// workflow: its parameters name a target and a value, never a limit.
package guard
