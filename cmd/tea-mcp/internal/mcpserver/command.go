package mcpserver

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// The limits of a server.
const (
	// maxCalls is how many tools can run concurrently.
	maxCalls = 64
	// maxMessage is the maximum size of a message from a client.
	maxMessage = 4 << 20
	// stopGrace is how long runs have to write their checkpoints when the server stops.
	stopGrace = 30 * time.Second
)

// Command returns the command mcp.
func Command() teacmd.Command {
	return teacmd.ServerCommand("mcp", "Offer the workflows of a directory as the tools of an MCP server.", func() teacmd.Server { return new(mcpCmd) })
}

type mcpCmd struct {
	HTTP      string `name:"http" placeholder:"ADDR" help:"Serve streamable HTTP at this address, such as localhost:8080, instead of stdin and stdout."`
	TokenFile string `placeholder:"FILE" help:"File with the bearer token that clients need. Required for an address that is not a loopback address."`
	teacmd.ServeFlags
}

// Serve serves until the client disconnects or the service stops.
func (c *mcpCmd) Serve(svc *teacmd.Service) error {
	if c.TokenFile != "" && c.HTTP == "" {
		return teacmd.UsageErrorf("--token-file is for --http: a client on stdin needs no token")
	}
	s, err := newServer(svc, c.Dir)
	if err != nil {
		return err
	}
	defer s.close()
	if c.HTTP == "" {
		return s.serveStdio()
	}
	token, err := readToken(c.TokenFile)
	if err != nil {
		return teacmd.UsageErrorf("--token-file: %w", err)
	}
	return s.serveHTTP(c.HTTP, token)
}

// readToken returns the token in a file; "" without a file.
func readToken(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	const most, least = 4 << 10, 16
	data, err := confine.ReadRegular(file, most)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(data))
	if len(token) < least || strings.ContainsAny(token, " \t\r\n") {
		return "", fmt.Errorf("%s: the token must be one word of at least %d characters; `openssl rand -hex 32` makes one", file, least)
	}
	if info, err := os.Stat(file); err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o007 != 0 {
		return "", fmt.Errorf("%s can be read by every user; run `chmod 600 %s`", file, file)
	}
	return token, nil
}

// server is the MCP server of a directory.
type server struct {
	svc *teacmd.Service
	// ctx is done when the server stops; its cause stops the runs.
	ctx  context.Context
	stop context.CancelCauseFunc

	mcp     *mcp.Server
	catalog *catalog

	// slots bounds the running calls; starting guards additions to calls.
	slots    chan struct{}
	starting sync.Mutex
	calls    sync.WaitGroup
	scans    sync.WaitGroup
	closing  sync.Once
}

// newServer loads the workflows. The caller closes the server.
func newServer(svc *teacmd.Service, dir string) (*server, error) {
	ctx, stop := context.WithCancelCause(svc.Context)
	s := &server{svc: svc, ctx: ctx, stop: stop, slots: make(chan struct{}, maxCalls)}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "tea", Title: "tea workflows", Version: svc.Version}, &mcp.ServerOptions{
		Instructions: "Each tool except resume runs a workflow and returns its final state. A result with the status waiting lists the questions of the run under pending; answer them with the tool resume. " + runsURI + " lists the runs.",
		Capabilities: &mcp.ServerCapabilities{
			Logging: &mcp.LoggingCapabilities{}, Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{},
		},
	})
	s.mcp.AddReceivingMiddleware(checkURI)
	s.mcp.AddSendingMiddleware(keepAnswer)
	s.mcp.AddTool(resumeTool(), s.tool(s.resume))
	s.addResources()
	var err error
	if s.catalog, err = newCatalog(s, dir); err != nil {
		stop(nil)
		return nil, err
	}
	s.catalog.Scan()
	s.scans.Go(func() { s.catalog.Watch(ctx) })
	return s, nil
}

// close stops the runs, waits for their checkpoints and closes the workflows.
func (s *server) close() { s.closing.Do(s.closeOnce) }

func (s *server) closeOnce() {
	s.starting.Lock()
	s.stop(errClosed)
	s.starting.Unlock()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.calls.Wait()
		s.scans.Wait()
		s.catalog.close()
	}()
	select {
	case <-done:
	case <-time.After(stopGrace):
		s.svc.Log.Warn("runs did not stop in time; their checkpoints have what had finished", "seconds", int(stopGrace.Seconds()))
	}
}

// serveStdio serves one client until it closes stdin.
func (s *server) serveStdio() error {
	protocol := os.Stdout
	os.Stdout = os.Stderr // nothing else may write to the protocol's stream
	err := s.mcp.Run(s.ctx, &mcp.IOTransport{Reader: os.Stdin, Writer: protocol, MaxLineLength: maxMessage})
	if err == nil || s.svc.Context.Err() != nil { // a signal is a normal end
		return nil
	}
	return fmt.Errorf("the connection to the client ended: %w; a message is one line of JSON-RPC with at most %d bytes", err, maxMessage)
}
