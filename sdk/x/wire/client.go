package wire

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/callstream"
	"github.com/the-edge-agent/tea/sdk/internal/handshake"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// maxManifest bounds a manifest. A manifest with sixty actions has 70 KB.
const maxManifest = 4 << 20

// Client calls one plugin process. It is safe for concurrent use. The caller
// closes it after the last call, before the connection.
type Client struct {
	conn   grpc.ClientConnInterface
	plugin pb.PluginClient
	back   *hostConn
	calls  atomic.Uint64
	open   openCalls
	// shared is set if calls share a stream; nil otherwise.
	shared *callstream.Caller

	mu           sync.RWMutex
	capabilities []string
}

// Connect returns a client on conn, which was dialed with [DialOptions]. With a
// broker the plugin can call back; a plugin without the broker service works
// without callbacks. The caller closes the client before conn.
func Connect(conn grpc.ClientConnInterface, broker Broker) *Client {
	return &Client{conn: conn, plugin: pb.NewPluginClient(conn), back: &hostConn{broker: broker}}
}

// ShareStream makes calls share one stream, and callbacks too, if the plugin supports it. It
// is called before Configure. The streams end with the connection.
func (c *Client) ShareStream() {
	c.shared = callstream.NewCaller(pb.NewPluginCallsClient(c.conn).Calls)
}

// Close ends the callbacks of the plugin, also for calls that still run.
func (c *Client) Close() { c.back.close() }

// Describe asks for the manifest and checks it.
func (c *Client) Describe(ctx context.Context) (tea.Manifest, error) {
	resp, err := c.plugin.Describe(ctx, &pb.DescribeRequest{})
	if err != nil {
		return tea.Manifest{}, toBroken(ctx, "describe", err)
	}
	if size := proto.Size(resp.GetManifest()); size > maxManifest {
		return tea.Manifest{}, tea.Errorf(tea.InternalError, "the plugin's manifest is not valid: %d bytes exceed the limit of %d", size, maxManifest)
	}
	m, err := pb.ToManifest(resp.GetManifest())
	if err == nil {
		err = m.Check()
	}
	if err == nil {
		err = m.CheckSchemas()
	}
	if err != nil {
		return tea.Manifest{}, tea.Errorf(tea.InternalError, "the plugin's manifest is not valid: %w", err)
	}
	return m, nil
}

// Configure opens the instance id with the given settings. If the plugin refuses them, the
// error is the plugin's [*tea.Error].
func (c *Client) Configure(ctx context.Context, id string, settings tea.Settings) error {
	return c.Import(ctx, id, settings, "")
}

// Import is Configure with the state in a file that [Client.Export] has written, or without
// state if path is empty.
func (c *Client) Import(ctx context.Context, id string, settings tea.Settings, path string) error {
	service, err := c.back.open(ctx)
	if err != nil {
		return err
	}
	req := &pb.ConfigureRequest{InstanceId: id, HostService: service, ImportPath: path, Capabilities: []string{handshake.Stream, handshake.Handover, handshake.Templates, handshake.Tokens}}
	if service != 0 {
		req.Capabilities = append(req.Capabilities, handshake.Callbacks)
	}
	if c.shared != nil {
		req.Capabilities = append(req.Capabilities, handshake.Calls)
	}
	for key, raw := range settings {
		if req.SettingsJson == nil {
			req.SettingsJson = map[string][]byte{}
		}
		req.SettingsJson[key] = raw
	}
	resp, err := c.plugin.Configure(ctx, req)
	if err != nil {
		return toBroken(ctx, "configure", err)
	}
	if e := resp.GetError(); e != nil {
		return pb.ToError(e)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, capability := range resp.GetCapabilities() {
		if !slices.Contains(c.capabilities, capability) {
			c.capabilities = append(c.capabilities, capability)
		}
	}
	return nil
}

// can reports whether the plugin has declared the capability for any of its instances.
func (c *Client) can(capability string) bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Contains(c.capabilities, capability)
}

// HandsOver reports whether the plugin's instances have state to hand over to another version.
func (c *Client) HandsOver() bool { return c.can(handshake.Handover) }

// Release closes an instance.
func (c *Client) Release(ctx context.Context, id string) error { return c.Export(ctx, id, "") }

// Export releases an instance after the instance has written its state to a new file, if path
// is not empty. If the plugin returns an error, the instance is still open.
func (c *Client) Export(ctx context.Context, id, path string) error {
	resp, err := c.plugin.Release(ctx, &pb.ReleaseRequest{InstanceId: id, ExportPath: path})
	if err != nil {
		return toBroken(ctx, "release", err)
	}
	if e := resp.GetError(); e != nil {
		return pb.ToError(e)
	}
	return nil
}

// Health asks whether the plugin accepts calls.
func (c *Client) Health(ctx context.Context) error {
	resp, err := c.plugin.Health(ctx, &pb.HealthRequest{})
	if err != nil {
		return toBroken(ctx, "health", err)
	}
	if !resp.GetReady() {
		return tea.Errorf(tea.ConnectionError, "the plugin does not accept calls: %s", resp.GetMessage())
	}
	return nil
}

// CallState is the state of a call according to the plugin.
type CallState int

// The states of a call. A plugin that does not report states leaves it unknown.
const (
	CallUnknown CallState = iota
	CallRunning
	CallEnded
)

// Call asks for the state of an abandoned call.
func (c *Client) Call(ctx context.Context, id string) (CallState, error) {
	resp, err := c.plugin.Health(ctx, &pb.HealthRequest{CallId: id})
	if err != nil {
		return CallUnknown, toBroken(ctx, "health", err)
	}
	switch resp.GetCall() {
	case pb.CallState_CALL_STATE_RUNNING:
		return CallRunning, nil
	case pb.CallState_CALL_STATE_ENDED:
		return CallEnded, nil
	}
	return CallUnknown, nil
}

// Shutdown asks the plugin to end its calls within grace, and then itself. It returns when the
// plugin has answered both the shutdown and its calls: the calls' answers can arrive later.
func (c *Client) Shutdown(ctx context.Context, grace time.Duration) error {
	if _, err := c.plugin.Shutdown(ctx, &pb.ShutdownRequest{GraceMs: grace.Milliseconds()}); err != nil {
		return toBroken(ctx, "shutdown", err)
	}
	select {
	case <-c.open.idle():
		return nil
	case <-ctx.Done():
		return toBroken(ctx, "shutdown", ctx.Err())
	}
}

// openCalls counts the calls without an answer.
type openCalls struct {
	mu sync.Mutex
	n  int
	// none is closed when n drops to 0; nil if nobody waits.
	none chan struct{}
}

func (o *openCalls) add(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n += n; o.n == 0 && o.none != nil {
		close(o.none)
		o.none = nil
	}
}

// idle returns a channel that is closed when there are no calls.
func (o *openCalls) idle() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.none == nil {
		o.none = make(chan struct{})
	}
	none := o.none
	if o.n == 0 {
		close(none)
		o.none = nil
	}
	return none
}

// nextCall returns a new call id.
func (c *Client) nextCall() string { return strconv.FormatUint(c.calls.Add(1), 36) }

// Constants for the start of a plugin with go-plugin: the cookie in the plugin's environment,
// the name of the service, the environment variables for the parent pipe's descriptor and for
// the minimum level of log records.
const (
	CookieKey   = handshake.CookieKey
	CookieValue = handshake.CookieValue
	Service     = handshake.Service
	ParentFD    = handshake.ParentFD
	LogLevel    = handshake.LogLevel
)

// DialOptions returns the options of a connection to a plugin: the message limit for both
// directions and the window.
func DialOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(handshake.MaxMessage), grpc.MaxCallSendMsgSize(handshake.MaxMessage)),
		grpc.WithInitialWindowSize(handshake.Window), grpc.WithInitialConnWindowSize(handshake.Window),
	}
}
