// Package handshake holds what host and plugin must agree on before they
// speak the protocol: names, environment variables, limits.
package handshake

import tea "github.com/the-edge-agent/tea/sdk"

const (
	// CookieKey is set to CookieValue in a plugin's environment when a host
	// starts it.
	CookieKey = "TEA_PLUGIN_COOKIE"
	// CookieValue tells a mistake from intent and is no secret.
	CookieValue = "tea.plugin.v1"
	// Service is the name under which go-plugin dispenses the protocol.
	Service = "tea"
	// ParentFD names the descriptor that reaches end of file when the host is
	// gone.
	ParentFD = "TEA_PARENT_FD"
	// LogLevel names the least level of the log records worth sending.
	LogLevel = "TEA_LOG_LEVEL"
	// MaxMessage is gRPC's limit on both sides. It leaves room around a
	// payload of the largest size, so that the check of the payload comes first.
	MaxMessage = tea.MaxPayload + 1<<20
	// Window is HTTP/2's flow control window. A fixed one keeps gRPC from
	// measuring the connection with a ping for each message, which makes small
	// calls over a local socket a good deal slower.
	Window = 4 << 20
)

// Capabilities that a side may have.
const (
	// Stream: InvokeStream.
	Stream = "stream"
	// Callbacks: the Host service.
	Callbacks = "host"
)
