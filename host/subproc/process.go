package subproc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	plugin "github.com/hashicorp/go-plugin"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

const (
	// defaultGrace is the time in which calls can end at a shutdown without a
	// deadline.
	defaultGrace = 5 * time.Second
	// exitGrace is the time in which a process must end after it has answered
	// the shutdown, or after its connection was lost.
	exitGrace = time.Second
)

// process is a running plugin.
type process struct {
	name    string
	logger  *slog.Logger
	runner  *runner
	client  *plugin.Client
	wire    *wire.Client
	sockets string
	// attached is the socket of a plugin under a debugger.
	attached string
	times    times
	limits   Limits
	began    time.Time

	// evict ends the process because one of its calls does not end.
	evict      func(verdict)
	stopping   atomic.Bool
	verdict    atomic.Pointer[verdict] // why the host killed it
	unanswered unanswered
}

// connect starts the process and waits for its first answer.
func (p *process) connect(ctx context.Context) error {
	protocol, err := p.client.Client()
	if err != nil {
		return err
	}
	if _, err := protocol.Dispense(wire.Service); err != nil {
		return err
	}
	return p.wire.Health(ctx)
}

// startFailure returns the reason why the process did not start.
func (p *process) startFailure(ctx context.Context, err error) *tea.Error {
	if deadline, ok := ctx.Deadline(); ok && !time.Now().Before(deadline) {
		<-ctx.Done() // on a busy machine go-plugin can notice its own time limit first
	}
	switch known := p.runner.failure.Load(); {
	case known != nil:
		return known
	case !p.runner.started():
		return startError(p.name, tea.InternalError, "%w", err)
	case errors.Is(ctx.Err(), context.Canceled):
		return startError(p.name, tea.Canceled, "%w", ctx.Err())
	case ctx.Err() != nil && p.runner.greeted.Load():
		return p.startError(p.tooLate("no answer"))
	case ctx.Err() != nil:
		return p.startError(p.tooLate("no handshake"))
	case p.awaitExit(exitGrace):
		return p.startError(exitText(p.runner.state))
	}
	return startError(p.name, tea.InternalError, "%w", err)
}

func (p *process) startError(reason string) *tea.Error {
	words := p.runner.output.lastOutput()
	e := startError(p.name, tea.PluginCrashed, "%s%s", reason, lastOutputNote(words))
	e.Details = map[string]any{"last_words": words}
	return e
}

// dead reports whether the process has ended.
func (p *process) dead() bool {
	select {
	case <-p.runner.exited:
		return true
	default:
		return false
	}
}

// awaitExit waits for the process to end, for at most limit, and reports whether it has
// ended.
func (p *process) awaitExit(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-p.runner.exited:
		return true
	case <-timer.C:
		return p.dead()
	}
}

// stop shuts the plugin down, gracefully within ctx, then by force. No part of the
// process is left when it returns.
func (p *process) stop(ctx context.Context) {
	p.stopping.Store(true)
	grace := defaultGrace
	if deadline, ok := ctx.Deadline(); ok {
		grace = time.Until(deadline)
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := p.wire.Shutdown(ctx, grace); err != nil && !p.dead() {
		if waited := p.unanswered.String(); waited != "" {
			err = fmt.Errorf("no answer from %s", waited)
		}
		p.logger.Warn("the plugin did not shut down in time and is killed", "error", err)
		_ = p.runner.Kill(ctx)
	}
	p.kill()
}

// kill releases everything that belongs to the process. It gives a running process a
// short time to end by itself.
func (p *process) kill() {
	if p.wire != nil {
		p.wire.Close()
	}
	if p.attached != "" {
		_ = p.runner.Kill(context.Background())
	}
	if p.runner.started() {
		// go-plugin asks the plugin to end, without a time limit.
		late := time.AfterFunc(exitGrace, func() { _ = p.runner.Kill(context.Background()) })
		p.client.Kill()
		<-p.runner.exited
		late.Stop()
	}
	if p.sockets != "" {
		os.RemoveAll(p.sockets)
	}
}

// crashed returns the error of a call during which the process died. The connection is
// lost or the process has ended; a process that is still running is killed.
func (p *process) crashed(action string) *tea.Error {
	if p.attached != "" {
		p.killBecause(verdict{reason: "the process behind " + p.attached + " (TEA_REATTACH) has closed the connection"})
	}
	if !p.awaitExit(exitGrace) {
		_ = p.runner.Kill(context.Background())
		<-p.runner.exited
	}
	words := p.runner.output.lastOutput()
	how, kind := error(processDied{p.ending()}), tea.PluginCrashed
	if v := p.killReason(); v != nil && v.limit {
		how, kind = errors.New(v.reason), tea.ResourceExhausted
	}
	e := faultError(p.name, kind, "plugin %s died during %s: %w%s", p.name, action, how, lastOutputNote(words))
	e.Details = map[string]any{"last_words": words}
	if status, ok := p.runner.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Details["signal"] = status.Signal().String()
	} else {
		e.Details["exit_code"] = int64(p.runner.state.ExitCode())
	}
	return e
}

// processDied is the cause of an error if the process of the called action died. It does not
// cross process boundaries: an action that returns the crash of another one has not
// crashed.
type processDied struct{ how string }

func (d processDied) Error() string { return d.how }

// Crashed marks the error as a crash for the engine.
func (processDied) Crashed() {}

func exitText(state *os.ProcessState) string { return fmt.Sprint(state) }

// unanswered are the calls that a process has not answered, including canceled ones. The
// zero value is empty.
type unanswered struct {
	mu     sync.Mutex
	counts map[string]int // by action
}

func (u *unanswered) add(action string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.counts == nil {
		u.counts = map[string]int{}
	}
	if u.counts[action] += n; u.counts[action] == 0 {
		delete(u.counts, action)
	}
}

func (u *unanswered) actions() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.counts))
}

// String returns the actions; "" if all calls were answered.
func (u *unanswered) String() string { return strings.Join(u.actions(), ", ") }
