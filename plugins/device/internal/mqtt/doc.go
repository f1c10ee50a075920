// Package mqtt has the actions mqtt.publish, mqtt.request and mqtt.last. Start with
// [Part]. A server (server.go) has one connection to a broker: a conn, which is made by
// the library for version 5 (version5.go) or 3.1.1 (version3.go) of the protocol.
package mqtt
