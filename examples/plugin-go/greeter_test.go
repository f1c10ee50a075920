package greeter

import (
	"context"
	"errors"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// The suite of the protocol, linked in and as a separate process. Each
// request is a sample: both must return the same result.
func TestConformance(t *testing.T) {
	teatest.Conformance(t, Bundle(),
		teatest.Request{Action: "greeter.hello", Params: helloParams{Name: "Ada"}},
		teatest.Request{Action: "greeter.spell", Params: spellParams{Text: "tea"}},
	)
}

func TestHello(t *testing.T) {
	got, err := teatest.Call(t, Bundle(), teatest.Request{Action: "greeter.hello", Params: helloParams{Name: "Ada", Tone: "loud"}})
	if err != nil {
		t.Fatal(err)
	}
	if text := got.(map[string]any)["text"]; text != "HELLO, ADA!" {
		t.Errorf("text = %q", text)
	}
}

func TestHelloFails(t *testing.T) {
	_, err := teatest.Call(t, Bundle(), teatest.Request{Action: "greeter.hello", Params: helloParams{Name: "nobody"}})
	var failure *tea.Error
	if !errors.As(err, &failure) || failure.Type != tea.NotFound {
		t.Errorf("err = %v, want not_found", err)
	}
}

func TestSpellStreams(t *testing.T) {
	host := &teatest.Host{}
	_, err := teatest.Call(t, Bundle(), teatest.Request{Action: "greeter.spell", Params: spellParams{Text: "tea"}, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	if text := host.Recorded().Text(); text != "tea" {
		t.Errorf("tokens = %q", text)
	}
}

func TestRelay(t *testing.T) {
	host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"text.upper": func(context.Context, any) (any, error) { return "TEA", nil },
	}}
	got, err := teatest.Call(t, Bundle(), teatest.Request{Action: "greeter.relay", Params: relayParams{Action: "text.upper"}, Host: host})
	if err != nil {
		t.Fatal(err)
	}
	if result := got.(map[string]any)["result"]; result != "TEA" {
		t.Errorf("result = %v", result)
	}
}
