// Package servertest starts the servers that the stores of package cloud are tested
// against. Each listens on the loopback interface and ends with the test program.
package servertest
