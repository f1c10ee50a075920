// Package remotetest has tests of package remotesqlite that run on every server,
// besides the suites of storetest.
package remotetest
