package tea_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

type helloParams struct {
	Name string `json:"name" doc:"who is greeted"`
}

type helloResult struct {
	Text string `json:"text"`
}

func hello(_ context.Context, _ *tea.Request, p helloParams) (helloResult, error) {
	return helloResult{Text: "Hello " + p.Name}, nil
}

// A typed function becomes an action, and its struct the schema.
func ExampleNewAction() {
	bundle := tea.Bundle{Name: "greet", Version: "0.1.0", Actions: []tea.Action{
		tea.NewAction("greet.hello", "Greets somebody.", hello),
	}}
	greet, err := bundle.NewInstance(context.Background(), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, params := range []string{`{"name": "Ada"}`, `{"nme": "Ada"}`} {
		resp, err := greet.Invoke(context.Background(), &tea.Request{
			Action: "greet.hello", Params: tea.RawPayload([]byte(params)), Host: &teatest.Host{},
		})
		if err != nil {
			fmt.Println(err)
			continue
		}
		text, _ := resp.Result.JSON()
		fmt.Println(string(text))
	}
	// Output:
	// {"text":"Hello Ada"}
	// validation_error: greet.hello needs the parameter "name"; has no parameter "nme"; did you mean "name"?
}

// closer is an instance that knows when it is closed.
type closer struct {
	settings tea.Settings
	closed   bool
}

func (c *closer) Close() error {
	c.closed = true
	return errors.New("stuck")
}

func TestInstanceGetsDeclaredSettingsAndIsClosed(t *testing.T) {
	t.Parallel()
	opened := &closer{}
	bundle := tea.Bundle{
		Name: "a", Version: "1", Settings: map[string]*schema.Schema{"mine": nil},
		Open: func(_ context.Context, s tea.Settings) (any, error) {
			opened.settings = s
			return opened, nil
		},
	}
	inst, err := bundle.NewInstance(t.Context(), tea.Settings{"mine": json.RawMessage(`1`), "other": json.RawMessage(`2`)})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tea.Settings{"mine": json.RawMessage(`1`)}, opened.settings); diff != "" {
		t.Error(diff)
	}
	if err := inst.Close(); err == nil || err.Error() != "close a: stuck" || !opened.closed {
		t.Errorf("closing gives %v, closed: %t", err, opened.closed)
	}
}

func TestInstanceTurnsEveryFailureIntoATypedError(t *testing.T) {
	t.Parallel()
	handlers := map[string]tea.Handler{
		"a.panic":    func(context.Context, *tea.Request) (*tea.Response, error) { panic("boom") },
		"a.plain":    func(context.Context, *tea.Request) (*tea.Response, error) { return nil, errors.New("no") },
		"a.canceled": func(context.Context, *tea.Request) (*tea.Response, error) { return nil, context.Canceled },
		"a.late":     func(context.Context, *tea.Request) (*tea.Response, error) { return nil, context.DeadlineExceeded },
		"a.nothing":  func(context.Context, *tea.Request) (*tea.Response, error) { return nil, nil },
		"a.niltype":  func(context.Context, *tea.Request) (*tea.Response, error) { var e *tea.Error; return nil, e },
		"a.wrapped": func(context.Context, *tea.Request) (*tea.Response, error) {
			var e *tea.Error
			return nil, fmt.Errorf("no: %w", e)
		},
	}
	bundle := tea.Bundle{Name: "a", Version: "1"}
	for name, handle := range handlers {
		bundle.Actions = append(bundle.Actions, tea.Action{Name: name, Handle: handle})
	}
	inst, err := bundle.NewInstance(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for action, want := range map[string]tea.ErrorType{
		"a.panic": tea.InternalError, "a.plain": tea.InternalError, "a.canceled": tea.Canceled,
		"a.late": tea.Timeout, "a.missing": tea.NotFound, "a.nothing": "", "a.niltype": "", "a.wrapped": tea.InternalError,
	} {
		t.Run(action, func(t *testing.T) {
			t.Parallel()
			resp, err := inst.Invoke(t.Context(), &tea.Request{Action: action, Host: &teatest.Host{}})
			if want == "" {
				if err != nil || resp == nil {
					t.Errorf("got %v, %v, want an empty response", resp, err)
				}
				return
			}
			var e *tea.Error
			if !errors.As(err, &e) || e.Type != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

func TestPanicReportsItsPosition(t *testing.T) {
	t.Parallel()
	deep := func(m map[string]int) { m["a"] = 1 }
	bundle := tea.Bundle{Name: "a", Version: "1", Actions: []tea.Action{
		{Name: "a.panic", Handle: func(context.Context, *tea.Request) (*tea.Response, error) { deep(nil); return nil, nil }},
	}}
	inst, err := bundle.NewInstance(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	host := &teatest.Host{}
	_, err = inst.Invoke(t.Context(), &tea.Request{Action: "a.panic", Host: host})
	if err == nil || !strings.Contains(err.Error(), "assignment to entry in nil map, in ") || !strings.Contains(err.Error(), "instance_test.go:") {
		t.Errorf("got %v", err)
	}
	logs := host.Recorded().Logs
	stack, _ := logs[0].Fields["stack"].([]any)
	if len(stack) != 2 { // the function, and the action that calls it
		t.Errorf("stack = %q", stack)
	}
	for _, call := range stack {
		if !strings.Contains(call.(string), "instance_test.go:") {
			t.Errorf("the stack leads to %s", call)
		}
	}
}

func TestPanicWhileOpeningIsAnError(t *testing.T) {
	t.Parallel()
	bundle := tea.Bundle{Name: "a", Version: "1", Open: func(context.Context, tea.Settings) (any, error) { panic("boom") }}
	_, err := bundle.NewInstance(t.Context(), nil)
	var e *tea.Error
	if !errors.As(err, &e) || e.Type != tea.InternalError {
		t.Errorf("got %v", err)
	}
}

// upperHost is a host for tests that answers some calls itself.
type upperHost struct{ teatest.Host }

func (*upperHost) Invoke(context.Context, string, any) (*tea.Response, error) {
	return tea.Respond("mine"), nil
}

func TestHostThatEmbedsAnotherGetsPlainCalls(t *testing.T) {
	t.Parallel()
	req := &tea.Request{Host: &upperHost{}}
	resp, err := req.Invoke(t.Context(), tea.Invocation{Action: "text.upper"})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := resp.Result.Value(); err != nil || got != "mine" {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestGoexitIsAnError(t *testing.T) {
	t.Parallel()
	bundle := tea.Bundle{Name: "a", Version: "1", Actions: []tea.Action{
		{Name: "a.exit", Handle: func(context.Context, *tea.Request) (*tea.Response, error) { runtime.Goexit(); return nil, nil }},
	}}
	inst, err := bundle.NewInstance(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = inst.Invoke(t.Context(), &tea.Request{Action: "a.exit", Host: &teatest.Host{}})
	if e := tea.AsError(err); e == nil || e.Type != tea.InternalError || !strings.Contains(e.Message, "a.exit called runtime.Goexit") {
		t.Errorf("got %v", err)
	}
	bundle.Open = func(context.Context, tea.Settings) (any, error) { runtime.Goexit(); return nil, nil }
	_, err = bundle.NewInstance(t.Context(), nil)
	if e := tea.AsError(err); e == nil || e.Type != tea.InternalError || !strings.Contains(e.Message, "opening a called runtime.Goexit") {
		t.Errorf("got %v", err)
	}
}

func TestManifestCheck(t *testing.T) {
	t.Parallel()
	good := func() tea.Manifest {
		return tea.Manifest{Name: "a", Version: "1", Protocol: tea.ProtocolVersion, Actions: []tea.ActionInfo{{Name: "a.b"}}}
	}
	for _, version := range []string{"1", "1.2", "1.2.3", "0.1.0-rc.1+build.5", "1.0.0-dev", "0.0.0-20261121-abc"} {
		m := good()
		m.Version = version
		if err := m.Check(); err != nil {
			t.Error(err)
		}
	}
	for name, spoil := range map[string]func(*tea.Manifest){
		"name":      func(m *tea.Manifest) { m.Name = "A" },
		"version":   func(m *tea.Manifest) { m.Version = "" },
		"v":         func(m *tea.Manifest) { m.Version = "v1.0.0" },
		"escape":    func(m *tea.Manifest) { m.Version = "1.0.0\x1b[2J" },
		"protocol":  func(m *tea.Manifest) { m.Protocol++ },
		"actions":   func(m *tea.Manifest) { m.Actions = nil },
		"action":    func(m *tea.Manifest) { m.Actions[0].Name = "b" },
		"duplicate": func(m *tea.Manifest) { m.Actions = append(m.Actions, m.Actions[0]) },
	} {
		m := good()
		spoil(&m)
		if m.Check() == nil {
			t.Errorf("a wrong %s passes", name)
		}
	}
}
