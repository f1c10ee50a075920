//go:build js

package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"syscall/js"

	"github.com/the-edge-agent/tea/host"
	tea "github.com/the-edge-agent/tea/sdk"
)

// release is the version. scripts/npm sets it.
var release = "0.0.0"

// main makes the host available as globalThis.teaHost.call and never returns.
// globalThis.teaHost has the options (a JSON text) and the callbacks of the page.
func main() {
	page := page{js.Global().Get("teaHost"), new(outbox)}
	s, err := newServer(page)
	if err != nil {
		page.Set("failed", js.ValueOf(string(encodeError(err))))
		return
	}
	page.Set("call", js.FuncOf(func(_ js.Value, args []js.Value) any {
		op, params, key := args[0].String(), args[1].String(), args[2]
		ctx, done := s.track(key) // before an operation that cancels it
		go func() {
			defer done()
			s.answer(ctx, op, params, key)
		}()
		return nil
	}))
	page.Call("ready")
	select {}
}

// openOptions are the options of openTea.
type openOptions struct {
	Dir     string            `json:"dir"`
	RunsDir string            `json:"runs_dir"`
	Config  json.RawMessage   `json:"config"`
	Env     map[string]string `json:"env"`
	Actions []pageAction      `json:"actions"`
}

func newServer(p page) (*server, error) {
	s := &server{page: p, running: map[string]func(error){}}
	if err := json.Unmarshal([]byte(p.Get("options").String()), &s.options); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the options: %w", err)
	}
	for name, text := range s.options.Env {
		if err := os.Setenv(name, text); err != nil { // for ${VAR} in settings, including those of resumed runs
			return nil, tea.Errorf(tea.ValidationError, "the variable %q of env: %w", name, err)
		}
	}
	s.log = slog.New(slog.NewJSONHandler(logWriter{p}, &slog.HandlerOptions{Level: slog.LevelInfo}))
	o := host.Options{Version: release, Bundles: bundles(), Logger: s.log}
	for _, a := range s.options.Actions {
		action, err := a.action(p)
		if err != nil {
			return nil, err
		}
		o.Actions = append(o.Actions, action)
	}
	var err error
	if s.host, err = host.New(o); err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%w", err)
	}
	if _, err := s.host.Actions(); err != nil { // an action of the page already exists
		return nil, tea.Errorf(tea.ValidationError, "actions: %w", err)
	}
	return s, s.checkSettings()
}

// checkSettings reports mistakes in the page's settings, which apply to all runs.
func (s *server) checkSettings() error {
	var config struct {
		Settings json.RawMessage `json:"settings"`
	}
	_ = json.Unmarshal(s.options.Config, &config) // loading reports a value that is not an object
	if len(config.Settings) == 0 {
		return nil
	}
	wf, err := s.host.Parse("config", []byte("nodes: [{name: a}]"), host.LoadOptions{Config: `{"settings":` + string(config.Settings) + `}`})
	if err != nil {
		return err
	}
	s.warn(wf)
	return wf.Close()
}

// warn logs the warnings of a loaded workflow.
func (s *server) warn(wf *host.Workflow) {
	for _, d := range wf.Warnings() {
		s.log.Warn(d.Error())
	}
}

// logWriter sends the host's log to the page.
type logWriter struct{ page page }

func (w logWriter) Write(line []byte) (int, error) {
	w.page.Call("log", string(line))
	return len(line), nil
}
