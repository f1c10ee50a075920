// Package remotetest has the tests of package remotesqlite that run on every server, in addition to package storetest.
package remotetest
