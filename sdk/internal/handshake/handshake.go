// Package handshake defines what host and plugin agree on before they use the
// protocol: names, environment variables, limits.
package handshake

import tea "github.com/the-edge-agent/tea/sdk"

const (
	// CookieKey is set to CookieValue in a plugin's environment when a host
	// starts it.
	CookieKey = "TEA_PLUGIN_COOKIE"
	// CookieValue distinguishes a start by a host from a mistake. It is not a secret.
	CookieValue = "tea.plugin.v1"
	// Service is the name under which go-plugin dispenses the protocol.
	Service = "tea"
	// ParentFD names the descriptor that reaches end of file when the host has
	// ended.
	ParentFD = "TEA_PARENT_FD"
	// LogLevel names the lowest level of log records to send.
	LogLevel = "TEA_LOG_LEVEL"
	// MaxMessage is gRPC's limit on both sides. It is larger than the maximum
	// payload, so that the payload is checked first.
	MaxMessage = tea.MaxPayload + 1<<20
	// Window is HTTP/2's flow control window. With a fixed window, gRPC does not
	// measure the connection with a ping for each message, which slows down
	// small calls over a local socket.
	Window = 4 << 20
)

// Capabilities of a side.
const (
	// Stream: InvokeStream.
	Stream = "stream"
	// Callbacks: the Host service.
	Callbacks = "host"
	// Handover: an instance exports its state for the next version.
	Handover = "handover"
	// Templates: the host evaluates templates for an action, and supports keys
	// of calls.
	Templates = "templates"
	// Calls: the side accepts many calls in one stream.
	Calls = "calls"
	// Tokens: the host accepts several tokens in one message.
	Tokens = "tokens"
)
