package wire

import (
	"google.golang.org/grpc"

	"github.com/the-edge-agent/tea/sdk/internal/handshake"
)

// What a host needs to start a plugin with go-plugin: the cookie in
// the plugin's environment, the name of the service, the environment
// variables for the parent pipe's descriptor and for the least level of log
// records worth sending.
const (
	CookieKey   = handshake.CookieKey
	CookieValue = handshake.CookieValue
	Service     = handshake.Service
	ParentFD    = handshake.ParentFD
	LogLevel    = handshake.LogLevel
)

// DialOptions are how a connection to a plugin must be dialled: the message
// limit for both directions and the window.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(handshake.MaxMessage), grpc.MaxCallSendMsgSize(handshake.MaxMessage)),
		grpc.WithInitialWindowSize(handshake.Window), grpc.WithInitialConnWindowSize(handshake.Window),
	}
}
