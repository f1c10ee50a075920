// Package objtest provides object storages for tests: real servers on the loopback
// interface, which scripts/object-stores installs, and [Run], the suite of a driver.
// Start with [Each].
package objtest
