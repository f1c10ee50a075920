package tea_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// call runs an action as a workflow would.
func call(bundle tea.Bundle, host tea.Host, settings tea.Settings, action, params string) {
	ctx := context.Background()
	instance, err := bundle.NewInstance(ctx, settings)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer instance.Close()
	resp, err := instance.Invoke(ctx, &tea.Request{Action: action, Params: tea.RawPayload([]byte(params)), Host: host})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := resp.Result.JSON()
	fmt.Println(string(result), err)
}

// An action can be built without a typed function, for example when its
// parameters are known at run time only. The bundle still checks them.
func ExampleAction() {
	echo := tea.Action{
		Name:    "demo.echo",
		Summary: "Returns its parameters.",
		Params:  &schema.Schema{Type: schema.Types{"object"}, Required: []string{"text"}},
		Handle: func(_ context.Context, req *tea.Request) (*tea.Response, error) {
			return &tea.Response{Result: req.Params}, nil
		},
	}
	bundle := tea.Bundle{Name: "demo", Version: "1.0.0", Actions: []tea.Action{echo}}
	call(bundle, &teatest.Host{}, nil, "demo.echo", `{"text":"hi"}`)
	call(bundle, &teatest.Host{}, nil, "demo.echo", `{}`)
	// Output:
	// {"text":"hi"} <nil>
	// validation_error: demo.echo needs the parameter "text"
}

// A bundle with settings opens an instance for each set of them; its actions
// are methods of that instance.
func ExampleBundle() {
	type config struct {
		Greeting string `json:"greeting" default:"Hello" doc:"the first word"`
	}
	type params struct {
		Name string `json:"name" doc:"whom to greet" minLength:"1"`
	}
	type result struct {
		Text string `json:"text" doc:"the greeting"`
	}
	bundle := tea.Bundle{
		Name:     "greet",
		Version:  "1.2.0",
		Settings: map[string]*schema.Schema{"greet": schema.Of[config]()},
		Open: func(_ context.Context, settings tea.Settings) (any, error) {
			c := &config{}
			return c, settings.Decode("greet", c)
		},
		Actions: []tea.Action{
			tea.NewMethod("greet.hello", "Greets somebody.", func(c *config, _ context.Context, _ *tea.Request, p params) (result, error) {
				return result{Text: c.Greeting + ", " + p.Name}, nil
			}, tea.Idempotent()),
		},
	}
	fmt.Println(bundle.Check())
	call(bundle, &teatest.Host{}, nil, "greet.hello", `{"name":"Ada"}`)
	call(bundle, &teatest.Host{}, tea.Settings{"greet": []byte(`{"greeting":"Olá"}`)}, "greet.hello", `{"name":"Ada"}`)
	call(bundle, &teatest.Host{}, nil, "greet.hello", `{"name":""}`)
	// Output:
	// <nil>
	// {"text":"Hello, Ada"} <nil>
	// {"text":"Olá, Ada"} <nil>
	// validation_error: greet.hello: parameter "name": must have at least 1 character, has 0
}

// While a call runs, the action can call other actions, keep durable notes,
// and report progress through its host.
func ExampleRequest() {
	type params struct {
		URLs []string `json:"urls"`
	}
	fetchAll := tea.NewAction("crawl.all", "Fetches pages.", func(ctx context.Context, req *tea.Request, p params) (map[string]any, error) {
		done := 0
		if note, found, err := req.Host.Note(ctx, "done"); err != nil {
			return nil, err
		} else if found {
			if err := note.Decode(&done); err != nil { // a call before a crash got this far
				return nil, err
			}
		}
		for ; done < len(p.URLs); done++ {
			req.Host.Progress(ctx, float64(done)/float64(len(p.URLs)), p.URLs[done])
			if _, err := req.Host.Invoke(ctx, "http.get", map[string]any{"url": p.URLs[done]}); err != nil {
				return nil, err
			}
			if err := req.Host.SetNote(ctx, "done", done+1); err != nil {
				return nil, err
			}
		}
		slog.InfoContext(ctx, "all pages are there")
		return map[string]any{"pages": done}, nil
	})
	host := &teatest.Host{
		Notes: map[string]any{"done": int64(1)},
		Actions: map[string]func(context.Context, any) (any, error){
			"http.get": func(context.Context, any) (any, error) { return map[string]any{"status": 200}, nil },
		},
	}
	bundle := tea.Bundle{Name: "crawl", Version: "1.0.0", Actions: []tea.Action{fetchAll}}
	call(bundle, host, nil, "crawl.all", `{"urls":["a","b","c"]}`)
	seen := host.Recorded()
	for _, c := range seen.Invoked {
		fmt.Println(c.Action, c.Params)
	}
	fmt.Println(seen.Notes)
	// Output:
	// {"pages":3} <nil>
	// http.get map[url:b]
	// http.get map[url:c]
	// map[done:3]
}

// An action that asks a model reports the usage of each request, and stops
// when the budget of the run is spent.
func ExampleRequest_Usage() {
	ask := tea.NewAction("model.ask", "Asks a model until it agrees.", func(ctx context.Context, req *tea.Request, _ struct{}) (map[string]any, error) {
		for request := 1; ; request++ {
			// ... one request to the model ...
			if err := req.Usage(ctx, tea.Usage{Tokens: 600, USD: 0.002}); err != nil {
				return nil, err
			}
		}
	})
	bundle := tea.Bundle{Name: "model", Version: "1.0.0", Actions: []tea.Action{ask}}
	call(bundle, &teatest.Host{Budget: 1500}, nil, "model.ask", `{}`)
	// Output: budget_exceeded: budget reached: tokens (1800 of 1500)
}

// A streaming action emits tokens before its result.
func ExampleStreaming() {
	tell := tea.NewAction("story.tell", "Tells a story.", func(ctx context.Context, req *tea.Request, _ struct{}) (map[string]any, error) {
		text := ""
		for _, word := range []string{"Once ", "upon ", "a time"} {
			req.Host.Token(ctx, word)
			text += word
		}
		return map[string]any{"text": text}, nil
	}, tea.Streaming())
	host := &teatest.Host{}
	call(tea.Bundle{Name: "story", Version: "1.0.0", Actions: []tea.Action{tell}}, host, nil, "story.tell", `{}`)
	fmt.Printf("%q\n", host.Recorded().Tokens)
	// Output:
	// {"text":"Once upon a time"} <nil>
	// ["Once " "upon " "a time"]
}

// AsError gives every error of a call its type.
func ExampleAsError() {
	for _, err := range []error{
		fmt.Errorf("read the sensor: %w", tea.Errorf(tea.ConnectionError, "no answer from port 3")),
		context.DeadlineExceeded,
		errors.New("a bug"),
	} {
		e := tea.AsError(err)
		fmt.Println(e.Type, e.Retryable)
	}
	// Output:
	// connection_error true
	// timeout true
	// internal_error false
}

// A payload is encoded and decoded when the other form is needed.
func ExamplePayload() {
	p := tea.RawPayload([]byte(`{"id": 9007199254740993, "tags": ["a"]}`))
	var v struct {
		ID   int64    `json:"id"`
		Tags []string `json:"tags"`
	}
	fmt.Println(p.Decode(&v), v.ID, v.Tags)
	raw, err := tea.ValuePayload(v).JSON()
	fmt.Println(string(raw), err)
	// Output:
	// <nil> 9007199254740993 [a]
	// {"id":9007199254740993,"tags":["a"]} <nil>
}
