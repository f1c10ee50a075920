package mcp

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/the-edge-agent/tea/plugins/mcp/internal/a2a"
	"github.com/the-edge-agent/tea/plugins/mcp/internal/process"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/breaker"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Client is the set of MCP servers and A2A agents of one workflow. It is safe for concurrent
// use. The host closes it.
type Client struct {
	*a2a.Agents
	servers  map[string]*server
	accepted *accepted
	group    *process.Group
}

// open returns a client for the settings. It does not start servers.
func open(s tea.Settings) (*Client, error) {
	var settings Settings
	if err := s.Decode(settingsKey, &settings); err != nil {
		return nil, err
	}
	var agents a2a.Settings
	if err := s.Decode(a2a.SettingsKey, &agents); err != nil {
		return nil, err
	}
	opened, err := a2a.Open(agents)
	if err != nil {
		return nil, err
	}
	c := &Client{Agents: opened, servers: map[string]*server{}, accepted: &accepted{path: settings.ToolsFile}, group: process.NewGroup()}
	for name, config := range settings.Servers {
		if err := config.check(name); err != nil {
			return nil, err
		}
		c.servers[name] = newServer(name, config, c)
	}
	return c, nil
}

// Close ends all servers.
func (c *Client) Close() error {
	var closing sync.WaitGroup
	for _, s := range c.servers {
		closing.Go(s.close)
	}
	closing.Wait()
	c.group.Close()
	c.Agents.Close()
	return nil
}

func (c *Client) names() []string { return slices.Sorted(maps.Keys(c.servers)) }

// server returns the server with that name.
func (c *Client) server(name string) (*server, error) {
	if s := c.servers[name]; s != nil {
		return s, nil
	}
	have := "settings.mcp.servers has none"
	if names := c.names(); len(names) > 0 {
		have = "settings.mcp.servers has " + strings.Join(names, ", ")
	}
	return nil, tea.Errorf(tea.NotFound, "unknown MCP server %q%s; %s", name, diag.Ending(name, c.names()), have)
}

const (
	// After maxFailures consecutive failures to connect, connecting pauses for
	// pause.
	maxFailures = 5
	pause       = 30 * time.Second
	// stopGrace is how long a process may take to end by itself.
	stopGrace = time.Second
)

// server is one MCP server, with a session while it is in use.
type server struct {
	name   string
	config Server
	client *Client

	breaker *breaker.Breaker
	slots   chan struct{} // for concurrent calls

	// life ends with the client.
	life context.Context
	end  context.CancelFunc

	// turn is held by the goroutine that connects or lists tools.
	turn    chan struct{}
	session *session
	// first has the digests of the tools in their first listing, by name. If no tools
	// were accepted, a tool must not change after it.
	first map[string]string
	// reported are the changes of tools that were already reported.
	reported map[string]bool
}

func newServer(name string, config Server, c *Client) *server {
	s := &server{
		name: name, config: config, client: c,
		breaker: breaker.New(breaker.Settings{Failures: maxFailures, Pause: pause}),
		slots:   make(chan struct{}, max(1, config.MaxConcurrentCalls)),
		turn:    make(chan struct{}, 1), reported: map[string]bool{},
	}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// errorf returns an error of this server.
func (s *server) errorf(t tea.ErrorType, format string, args ...any) *tea.Error {
	e := tea.Errorf(t, "MCP server %s: %w", s.name, fmt.Errorf(format, args...))
	e.Source = s.name
	return e
}

// lock waits for the turn. The caller unlocks.
func (s *server) lock(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if s.life.Err() != nil {
		s.unlock()
		return s.errorf(tea.Canceled, "the client is closed")
	}
	return nil
}

func (s *server) unlock() { <-s.turn }

// use returns a session. It connects if there is none.
func (s *server) use(ctx context.Context) (*session, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.unlock()
	if s.session != nil && !s.session.ended() {
		return s.session, nil
	}
	if s.session != nil {
		s.session.close()
		s.session = nil
	}
	if !s.breaker.Allow() {
		e := s.errorf(tea.CircuitOpen, "it failed to start %d times in a row; the next attempt is possible in at most %s", maxFailures, pause)
		return nil, e
	}
	session, err := s.connect(ctx)
	if ctx.Err() == nil {
		s.breaker.Record(err == nil)
	}
	if err != nil {
		return nil, err
	}
	s.session = session
	return session, nil
}

// listing is use with the tools of the server. It reports changes of the tools to host.
func (s *server) listing(ctx context.Context, host tea.Host) (*session, *listing, error) {
	session, err := s.use(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := s.lock(ctx); err != nil {
		return nil, nil, err
	}
	defer s.unlock()
	if l := session.fresh(); l != nil {
		return session, l, nil
	}
	var expired atomic.Bool
	l, err := s.list(context.WithValue(ctx, expiredKey{}, &expired), session)
	if err != nil {
		if err = s.explain(ctx, session, "list its tools", err); expired.Load() {
			err = session.expire(err)
		}
		return nil, nil, err
	}
	session.tools.Store(l)
	s.report(ctx, host, l)
	return session, l, nil
}

// report logs problems of tools, once per process. A nil host disables it.
func (s *server) report(ctx context.Context, host tea.Host, l *listing) {
	say := func(message string, fields map[string]any) {
		key := fmt.Sprint(message, fields)
		if host == nil || s.reported[key] || len(s.reported) >= maxTools {
			return
		}
		s.reported[key] = true
		fields["server"] = s.name
		host.Log(ctx, slog.LevelWarn, message, fields)
	}
	accepted, err := s.client.accepted.of(s.name)
	if err == nil && accepted == nil {
		say("the tools of the MCP server "+s.name+" were not reviewed: `tea plugin refresh mcp --workflow FILE` stores them, then changes are refused", map[string]any{})
	}
	again := s.first != nil
	if !again {
		s.first = map[string]string{}
	}
	for _, t := range l.tools {
		if _, known := s.first[t.def.Name]; !known {
			s.first[t.def.Name] = t.digest
			if again && accepted == nil {
				say("the MCP server "+s.name+" has the new tool "+quoted(t.def.Name), map[string]any{"tool": t.def.Name})
			}
		}
		if problem := s.refusal(t); problem != nil {
			say(problem.Message, map[string]any{"tool": t.def.Name})
		} else if t.problem != "" {
			say("the parameters of the tool "+quoted(t.def.Name)+" are not checked: "+t.problem, map[string]any{"tool": t.def.Name})
		}
	}
	for name := range accepted {
		if l.named(name) == nil {
			say("the MCP server "+s.name+" no longer has the tool "+quoted(name), map[string]any{"tool": name})
		}
	}
	if l.omitted != "" {
		say("MCP server "+s.name+": "+l.omitted, map[string]any{})
	}
}

// refusal returns the reason why a tool must not be called; nil if it may be.
func (s *server) refusal(t *tool) *tea.Error {
	const remedy = "review it with mcp.list_tools, then accept it with `tea plugin refresh mcp --workflow FILE`"
	accepted, err := s.client.accepted.of(s.name)
	if err != nil {
		return tea.AsError(err)
	}
	if accepted == nil {
		if was, known := s.first[t.def.Name]; known && was != t.digest {
			return s.errorf(tea.PermissionDenied, "the definition of the tool %s changed while the server was in use; %s", quoted(t.def.Name), remedy)
		}
		return nil
	}
	switch was, known := accepted[t.def.Name]; {
	case !known:
		return s.errorf(tea.PermissionDenied, "the tool %s is not among the accepted tools in %s; %s", quoted(t.def.Name), s.client.accepted.path, remedy)
	case was != t.digest:
		return s.errorf(tea.PermissionDenied, "the definition of the tool %s differs from the accepted one in %s; %s", quoted(t.def.Name), s.client.accepted.path, remedy)
	}
	return nil
}

// close ends the session.
func (s *server) close() {
	s.end()
	s.turn <- struct{}{}
	defer s.unlock()
	if s.session != nil {
		s.session.close()
		s.session = nil
	}
}

// slot waits until the server can accept another call. The caller releases it.
func (s *server) slot(ctx context.Context) (release func(), err error) {
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// quoted returns a name from a server, quoted for a message.
func quoted(name string) string {
	if len(name) > 100 {
		name = name[:100] + "..."
	}
	return fmt.Sprintf("%q", name)
}
