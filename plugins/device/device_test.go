package device_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/the-edge-agent/tea/plugins/device"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/value"
)

type object = map[string]any

// plant is an instance of the bundle, whose connections stay open between calls.
type plant struct {
	t        *testing.T
	instance *tea.Instance
	settings object
	host     *teatest.Host
	dryRun   bool
}

// newPlant returns an instance, which the first call opens. The state of the guards is
// the test's own.
func newPlant(t *testing.T, settings object) *plant {
	t.Helper()
	if _, ok := settings["device"]; !ok {
		settings["device"] = object{"state": t.TempDir()}
	}
	p := &plant{t: t, settings: settings, host: &teatest.Host{}}
	t.Cleanup(p.close)
	return p
}

// close ends the instance. A later call opens another one.
func (p *plant) close() {
	if p.instance != nil {
		if err := p.instance.Close(); err != nil {
			p.t.Error(err)
		}
		p.instance = nil
	}
}

func (p *plant) call(action string, params object) (object, error) {
	p.t.Helper()
	return p.callIn(p.t.Context(), action, params)
}

func (p *plant) callIn(ctx context.Context, action string, params object) (object, error) {
	p.t.Helper()
	if p.instance == nil {
		settings := tea.Settings{}
		for key, v := range p.settings {
			raw, err := json.Marshal(v)
			if err != nil {
				p.t.Fatal(err)
			}
			settings[key] = raw
		}
		bundle := device.Bundle()
		var err error
		if p.instance, err = bundle.NewInstance(ctx, settings); err != nil {
			return nil, err
		}
	}
	resp, err := p.instance.Invoke(ctx, &tea.Request{Action: action, Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1, DryRun: p.dryRun}, Host: p.host})
	if err != nil {
		return nil, err
	}
	if resp, err = encoded(resp); err != nil {
		return nil, err
	}
	got, err := resp.Result.Value()
	result, _ := got.(object)
	return result, err
}

// encoded returns a response as a host gets it from a process.
func encoded(resp *tea.Response) (*tea.Response, error) {
	raw, err := resp.Result.JSON()
	return &tea.Response{Result: tea.RawPayload(raw)}, err
}

// must calls an action that succeeds.
func (p *plant) must(action string, params object) object {
	p.t.Helper()
	got, err := p.call(action, params)
	if err != nil {
		p.t.Fatalf("%s %v: %v", action, params, err)
	}
	return got
}

// fails calls an action that fails with an error of a type, and an effect if it is a
// write.
func (p *plant) fails(action string, params object, want tea.ErrorType, effect any) *tea.Error {
	p.t.Helper()
	got, err := p.call(action, params)
	e := new(tea.Error)
	if !errors.As(err, &e) {
		p.t.Fatalf("%s %v: got %v, %v, want an error", action, params, got, err)
	}
	if e.Type != want || e.Details["effect"] != effect {
		p.t.Fatalf("%s %v: got %v with details %v, want %s with effect %v", action, params, e, e.Details, want, effect)
	}
	return e
}

// watch starts an action that passes on what it watches. The results are sent to the
// first channel, which holds up the action, and its error to the second one.
func (p *plant) watch(action string, params object) (results <-chan object, ended <-chan error) {
	p.t.Helper()
	host, got, end := &values{got: make(chan string)}, make(chan object), make(chan error, 1)
	go func() {
		_, err := p.instance.Invoke(p.t.Context(), &tea.Request{Action: action, Params: tea.ValuePayload(params), Host: host})
		close(host.got)
		end <- err
	}()
	go func() {
		defer close(got)
		for text := range host.got {
			v, err := value.Decode([]byte(text))
			if err != nil {
				p.t.Error(err)
			}
			result, _ := v.(object)
			got <- result
		}
	}()
	return got, end
}
