// Package modbus has the actions modbus.read and modbus.write. Start with [Part]. A [Location] is the place and the
// encoding of a value in a machine (values.go); a server (server.go) is the connection to a machine.
package modbus
