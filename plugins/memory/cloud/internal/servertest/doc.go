// Package servertest starts the servers that the tests of the cloud stores need. Each listens on the loopback interface
// and ends with the test program.
package servertest
