// Package opcua has the actions opcua.read, write, browse, call and watch. Start with
// [Part]. A server (server.go) has one session, whose requests share it; values.go
// converts values.
package opcua
