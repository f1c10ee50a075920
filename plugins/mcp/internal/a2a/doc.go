// Package a2a uses agents that other programs offer with the Agent2Agent protocol,
// versions 1.0 and 0.3, over JSON-RPC. Start with [Open].
//
// Source: https://a2a-protocol.org/latest/specification
package a2a
