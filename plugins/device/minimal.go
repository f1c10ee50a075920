//go:build minimal && !modbus && !mqtt && !opcua && !serial && !(gpio && linux) && !command && !system

package device

// The compiler shows this text.
var _ int = "the tag minimal needs one of the parts command, gpio (on Linux), modbus, mqtt, opcua, serial, system, as in device[minimal,modbus]"
