// Package modbus has the actions modbus.read and modbus.write. Start with [Part]. A
// [Location] says where a value is in a machine and how it is encoded (values.go); a
// server (server.go) is the connection to one.
package modbus
