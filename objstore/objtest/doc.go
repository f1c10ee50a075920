// Package objtest has object storages for tests: real servers on the loopback
// interface, started from what scripts/object-stores installs, and [Run], the
// suite of a driver. Start with [Each].
package objtest
