package subproc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

const (
	// scriptVariable names the fake that a script starts.
	scriptVariable = "TEA_TEST_FAKE"
	// versionVariable and traitsVariable configure the fake plugin "swap".
	versionVariable = "TEA_TEST_VERSION"
	traitsVariable  = "TEA_TEST_TRAITS"
)

// replace puts a version of the plugin "swap" into a directory, atomically.
// Traits change it, see [swapBundle].
func replace(t testing.TB, dir, version string, traits ...string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	replaceBy(t, dir, fmt.Sprintf("#!/bin/sh\nexport %s=tea-plugin-swap %s=%s %s=%q\nexec %s\n",
		scriptVariable, versionVariable, version, traitsVariable, strings.Join(traits, " "), self))
}

// replaceBy puts any file in the place of the plugin.
func replaceBy(t testing.TB, dir, content string) {
	t.Helper()
	f, err := os.CreateTemp(dir, "new")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(content); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Chmod(0o755), f.Close(), os.Rename(f.Name(), filepath.Join(dir, "tea-plugin-swap"))); err != nil {
		t.Fatal(err)
	}
}

// swapSettings are the settings of the fake plugin.
type swapSettings struct {
	Path string `json:"path,omitempty" format:"path"`
}

type swapInstance struct {
	path string
	lock *os.File
}

type swapParams struct {
	ID string `json:"id,omitempty"`
}

type swapResult struct {
	Version string `json:"version"`
	PID     int    `json:"pid"`
	Inner   string `json:"inner,omitempty"`
	Count   int64  `json:"count,omitempty"`
}

func swapAnswer() swapResult {
	return swapResult{Version: os.Getenv(versionVariable), PID: os.Getpid()}
}

// swapBundle is a plugin in several versions. The traits are:
//
//	renamed    has another name
//	fewer      lacks an action
//	stricter   requires another parameter
//	refuses    refuses its settings
//	hangs      does not return from Configure
//	exclusive  has a lock on a file in its folder
//	state      counts calls, and hands the count over
//	forgets    cannot import a count
//	stuck      cannot export its count
//	large      has a manifest that is too large
//	eats       uses 4 GiB in Configure
//	slow       accepts its settings too late
//	verbose    refuses its settings with 66 MiB of text
//	noisy      writes without end, and does not return from Configure
//	crashing   has the actions of the plugin "crash", too
func swapBundle() tea.Bundle {
	traits := strings.Fields(os.Getenv(traitsVariable))
	is := func(trait string) bool { return slices.Contains(traits, trait) }
	b := tea.Bundle{
		Name: "swap", Version: os.Getenv(versionVariable),
		Settings: map[string]*schema.Schema{"swap": schema.Of[swapSettings]()},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			inst := &swapInstance{}
			var s swapSettings
			if err := settings.Decode("swap", &s); err != nil {
				return nil, err
			}
			inst.path = s.Path
			switch {
			case is("refuses"):
				return nil, tea.Errorf(tea.ValidationError, "settings.swap: no longer supported")
			case is("hangs"):
				block()
			case is("eats"):
				useMemory(4 << 30)
			case is("slow"):
				<-time.After(silence + time.Second)
			case is("verbose"):
				return nil, tea.Errorf(tea.ValidationError, "%s", strings.Repeat("no ", 66<<20/3))
			case is("noisy"):
				go flood(os.Stderr, bytes.Repeat([]byte("x"), 1<<16))
				flood(os.Stdout, bytes.Repeat([]byte("x"), 1<<16))
			case is("exclusive"):
				return inst, inst.acquire()
			case is("state"):
				return &countingInstance{swapInstance: inst, forgets: is("forgets"), stuck: is("stuck")}, nil
			}
			return inst, nil
		},
		Actions: []tea.Action{
			tea.NewAction("swap.count", "Counts its calls.", func(_ context.Context, req *tea.Request, _ swapParams) (swapResult, error) {
				answer := swapAnswer()
				if c, ok := req.Instance.(*countingInstance); ok {
					answer.Count = c.count.Add(1)
				}
				return answer, nil
			}),
			tea.NewMethod("swap.note", "Appends a line to a file.", (*swapInstance).note),
			tea.NewMethod("swap.stream", "Emits tokens and appends a line to a file.", (*swapInstance).stream, tea.Streaming()),
			tea.NewMethod("swap.outer", "Waits for the host and calls swap.note through it.", (*swapInstance).outer),
			tea.NewAction("swap.hold", "Starts a child in its own session, emits its number and never ends.", hold, tea.Streaming()),
		},
	}
	if is("exclusive") {
		b.Exclusive = []string{"swap.path"}
	}
	switch {
	case is("large"):
		b.Description = strings.Repeat("x", 5<<20)
	case is("crashing"):
		for _, a := range crashBundle("crash").Actions {
			a.Name = strings.Replace(a.Name, "crash.", "swap.", 1)
			if b.Find(a.Name) == nil {
				b.Actions = append(b.Actions, a)
			}
		}
	case is("renamed"):
		b.Name = "another"
	case is("fewer"):
		b.Actions = b.Actions[:3]
	case is("stricter"):
		type stricter struct {
			ID  string `json:"id,omitempty"`
			Key string `json:"key"`
		}
		b.Actions[1] = tea.NewAction("swap.note", "Requires a key.", func(context.Context, *tea.Request, stricter) (swapResult, error) {
			return swapAnswer(), nil
		})
	}
	return b
}

func hold(ctx context.Context, req *tea.Request, _ swapParams) (swapResult, error) {
	child := exec.Command("sleep", "1000")
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		return swapResult{}, err
	}
	req.Host.Token(ctx, strconv.Itoa(child.Process.Pid))
	block()
	return swapResult{}, nil
}

// acquire locks the folder, which no other process can have locked.
func (s *swapInstance) acquire() (err error) {
	if s.lock, err = os.OpenFile(filepath.Join(s.path, "lock"), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return tea.Errorf(tea.ConnectionError, "the folder is in use")
	}
	return nil
}

func (s *swapInstance) Close() error {
	if s.lock != nil {
		return s.lock.Close()
	}
	return nil
}

// countingInstance has state.
type countingInstance struct {
	*swapInstance
	count          atomic.Int64
	forgets, stuck bool
}

// Export implements tea.Handover.
func (c *countingInstance) Export(_ context.Context, w io.Writer) error {
	if c.stuck {
		return tea.Errorf(tea.InternalError, "it does not fit")
	}
	_, err := fmt.Fprint(w, c.count.Load())
	return err
}

// Import implements tea.Handover.
func (c *countingInstance) Import(_ context.Context, r io.Reader) error {
	if c.forgets {
		return tea.Errorf(tea.ValidationError, "this is not a count")
	}
	var count int64
	_, err := fmt.Fscan(r, &count)
	c.count.Store(count)
	return err
}

// note appends the id to the file "effects", in one write.
func (s *swapInstance) note(_ context.Context, _ *tea.Request, p swapParams) (swapResult, error) {
	if s.path == "" {
		return swapAnswer(), nil
	}
	f, err := os.OpenFile(filepath.Join(s.path, "effects"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return swapResult{}, err
	}
	_, err = fmt.Fprintln(f, p.ID)
	return swapAnswer(), errors.Join(err, f.Close())
}

func (s *swapInstance) stream(ctx context.Context, req *tea.Request, p swapParams) (swapResult, error) {
	for range 5 {
		req.Host.Token(ctx, "x")
	}
	return s.note(ctx, req, p)
}

func (s *swapInstance) outer(ctx context.Context, req *tea.Request, p swapParams) (swapResult, error) {
	if _, err := req.Host.Invoke(ctx, "test.wait", map[string]any{}); err != nil {
		return swapResult{}, err
	}
	resp, err := req.Host.Invoke(ctx, "swap.note", map[string]any{"id": p.ID})
	if err != nil {
		return swapResult{}, err
	}
	var inner swapResult
	if err := resp.Result.Decode(&inner); err != nil {
		return swapResult{}, err
	}
	answer := swapAnswer()
	answer.Inner = inner.Version
	return answer, nil
}

// swapHost is the host of calls of the fake plugin.
type swapHost struct {
	teatest.Host
	inst   *instance
	wait   func(context.Context) // for test.wait; can be nil
	tokens int
}

func (h *swapHost) Token(context.Context, string) { h.tokens++ }

func (h *swapHost) Invoke(ctx context.Context, action string, params any) (*tea.Response, error) {
	if action == "test.wait" {
		if h.wait != nil {
			h.wait(ctx)
		}
		return tea.Respond(map[string]any{}), nil
	}
	return h.inst.Invoke(ctx, &tea.Request{Action: action, Params: tea.AsPayload(params), Host: h})
}

// swapEnd is how a call of the fake plugin has ended.
type swapEnd struct {
	swapResult
	err error
}

// outer begins a call of swap.outer and returns when it waits in the host.
func (h *swapHost) outer(t *testing.T, id string, wait func(context.Context)) <-chan swapEnd {
	t.Helper()
	waits, ended := make(chan struct{}), make(chan swapEnd, 1)
	slow := &swapHost{inst: h.inst, wait: func(ctx context.Context) { close(waits); wait(ctx) }}
	go func() {
		got, err := slow.ask(t.Context(), "swap.outer", id)
		ended <- swapEnd{got, err}
	}()
	select {
	case <-waits:
	case end := <-ended:
		t.Fatalf("the call ended before it reached the host: %v", end.err)
	}
	return ended
}

// ask calls an action of the fake plugin.
func (h *swapHost) ask(ctx context.Context, action, id string) (swapResult, error) {
	resp, err := h.inst.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(map[string]any{"id": id}), Host: h})
	var result swapResult
	if err == nil {
		err = resp.Result.Decode(&result)
	}
	return result, err
}
