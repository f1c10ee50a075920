// Package serial has the actions serial.exchange, serial.list and serial.watch. Start
// with [Part]. A call opens its port for itself (port.go), so that a port is free for
// other calls, workflows and programs in between.
package serial
