package killtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/memory"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/serve"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

func TestMain(m *testing.M) {
	if os.Getenv(wire.CookieKey) == wire.CookieValue {
		serve.Main(memory.Bundle())
	}
	goleak.VerifyTestMain(m)
}

// plugin is a process that has a memory open.
type plugin struct {
	cmd      *exec.Cmd
	process  *teatest.Process
	instance teatest.Instance
	output   *output
	killed   atomic.Bool
	acks     *atomic.Int64
}

// output keeps what a process says.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

func startPlugin(t *testing.T, settings tea.Settings, acks *atomic.Int64) *plugin {
	t.Helper()
	path := os.Getenv("TEA_MEMORY_PLUGIN")
	if path == "" {
		var err error
		if path, err = os.Executable(); err != nil {
			t.Fatal(err)
		}
	}
	ctx := t.Context()
	p := &plugin{cmd: exec.CommandContext(context.WithoutCancel(ctx), path), output: &output{}, acks: acks}
	var err error
	if p.process, err = teatest.Start(ctx, p.cmd, p.output); err != nil {
		t.Fatalf("%v\n%s", err, p.output)
	}
	if p.instance, err = p.process.Open(ctx, settings); err != nil {
		t.Fatalf("%v\n%s", err, p.output)
	}
	return p
}

// kill ends the process immediately.
func (p *plugin) kill() {
	p.killed.Store(true)
	_ = p.cmd.Process.Kill() // it may have ended by itself
}

// errKilled is the answer to a call that the process did not outlive.
var errKilled = errors.New("killed meanwhile")

// call calls an action. A process that was not killed answers.
func (p *plugin) call(ctx context.Context, action string, params, result any) error {
	resp, err := p.instance.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1}, Host: &teatest.Host{}})
	var broken *wire.BrokenError
	switch {
	case err == nil && result == nil:
		return nil
	case err == nil:
		return resp.Result.Decode(result)
	case errors.As(err, &broken) && p.killed.Load():
		return errKilled
	}
	return fmt.Errorf("%s %.300s: %w", action, text(params), err)
}

// change is a call that changes something.
func (p *plugin) change(ctx context.Context, action string, params, result any) error {
	err := p.call(ctx, action, params, result)
	if err == nil {
		p.acks.Add(1)
	}
	return err
}

func text(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
