// Package bare is a plugin and its host as users of go-plugin write them, with JSON
// at both ends, for comparison with tea. Start with [Serve] and [Start].
package bare

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"

	hclog "github.com/hashicorp/go-hclog"
	plugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// The methods of the plugin: JSON in, JSON out.
const (
	echoMethod   = "/bare.Echo/Echo"
	tokensMethod = "/bare.Echo/Tokens"
)

// maxMessage is also the limit of tea's plugins.
const maxMessage = 64 << 20

var handshake = plugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: "BARE_PLUGIN", MagicCookieValue: "echo"}

// Serve is the main function of the plugin.
func Serve() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: handshake, Plugins: plugin.PluginSet{"echo": echo{}}, Logger: hclog.NewNullLogger(),
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			return plugin.DefaultGRPCServer(append(opts, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxSendMsgSize(maxMessage)))
		},
	})
}

type echo struct{ plugin.NetRPCUnsupportedPlugin }

// GRPCServer registers the service.
func (echo) GRPCServer(_ *plugin.GRPCBroker, s *grpc.Server) error {
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "bare.Echo", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Echo", Handler: serveEcho}},
		Streams: []grpc.StreamDesc{{StreamName: "Tokens", ServerStreams: true, Handler: serveTokens}},
	}, nil)
	return nil
}

// GRPCClient returns the connection.
func (echo) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return conn, nil
}

func serveEcho(_ any, _ context.Context, //nolint:revive // the signature is grpc.MethodDesc's
	decode func(any) error, _ grpc.UnaryServerInterceptor,
) (any, error) {
	in := new(wrapperspb.BytesValue)
	if err := decode(in); err != nil {
		return nil, err
	}
	var params map[string]any
	if err := json.Unmarshal(in.GetValue(), &params); err != nil {
		return nil, err
	}
	out, err := json.Marshal(params)
	return wrapperspb.Bytes(out), err
}

// TokenParams are the parameters of a stream of tokens.
type TokenParams struct {
	Tokens int `json:"tokens"`
}

// token is a token of a stream.
type token struct {
	Text string `json:"text"`
}

func serveTokens(_ any, stream grpc.ServerStream) error {
	in := new(wrapperspb.BytesValue)
	if err := stream.RecvMsg(in); err != nil {
		return err
	}
	var params TokenParams
	if err := json.Unmarshal(in.GetValue(), &params); err != nil {
		return err
	}
	for i := range params.Tokens {
		text, err := json.Marshal(token{TokenText(i)})
		if err != nil {
			return err
		}
		if err := stream.SendMsg(wrapperspb.Bytes(text)); err != nil {
			return err
		}
	}
	return nil
}

// TokenText returns a text about as long as a model's token.
func TokenText(i int) string { return " token" + strconv.Itoa(i%10) }

// Host is a host of the plugin. It is safe for concurrent use. The caller closes
// it.
type Host struct {
	client *plugin.Client
	conn   *grpc.ClientConn
}

// Start starts the plugin.
func Start(cmd *exec.Cmd) (*Host, error) {
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: handshake, Plugins: plugin.PluginSet{"echo": echo{}}, Cmd: cmd,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC}, Logger: hclog.NewNullLogger(),
		GRPCDialOptions: []grpc.DialOption{grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage))},
	})
	protocol, err := client.Client()
	if err != nil {
		client.Kill()
		return nil, fmt.Errorf("start the bare plugin: %w", err)
	}
	conn, err := protocol.Dispense("echo")
	if err != nil {
		client.Kill()
		return nil, fmt.Errorf("start the bare plugin: %w", err)
	}
	return &Host{client, conn.(*grpc.ClientConn)}, nil
}

// Close ends the plugin.
func (h *Host) Close() { h.client.Kill() }

// Echo returns params through the plugin.
func (h *Host) Echo(ctx context.Context, params map[string]any) (map[string]any, error) {
	in, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	out := new(wrapperspb.BytesValue)
	if err := h.conn.Invoke(ctx, echoMethod, wrapperspb.Bytes(in), out); err != nil {
		return nil, err
	}
	var result map[string]any
	return result, json.Unmarshal(out.GetValue(), &result)
}

// Tokens requests n tokens and returns the number of tokens that it read.
func (h *Host) Tokens(ctx context.Context, n int) (read int, err error) {
	in, err := json.Marshal(TokenParams{n})
	if err != nil {
		return 0, err
	}
	stream, err := h.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, tokensMethod)
	if err != nil {
		return 0, err
	}
	if err := errors.Join(stream.SendMsg(wrapperspb.Bytes(in)), stream.CloseSend()); err != nil {
		return 0, err
	}
	for {
		out := new(wrapperspb.BytesValue)
		if err := stream.RecvMsg(out); errors.Is(err, io.EOF) {
			return read, nil
		} else if err != nil {
			return read, err
		}
		var text token
		if err := json.Unmarshal(out.GetValue(), &text); err != nil {
			return read, err
		}
		read++
	}
}
