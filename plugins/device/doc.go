// Package device is the bundle of actions that reach the machines around a device:
// modbus.* (registers and coils), opcua.* (nodes and methods), mqtt.* (messages), serial.*
// (bytes and lines), gpio.* (levels), command.run and system.* (the device itself).
//
// Start with [Bundle]. Each protocol is a part (internal/part) in a package of its own,
// below a build tag: without tags all parts are built in, with the tag minimal only
// those that have their own tag, such as -tags minimal,modbus. Every write passes the
// guards (internal/guard), which the settings declare.
package device
