// Package greeter contains the actions of tea-plugin-greeter.
package greeter

import (
	"context"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Bundle returns the actions. A program that embeds tea can also link them.
func Bundle() tea.Bundle {
	return tea.Bundle{
		Name:        "greeter",
		Version:     "0.1.0",
		Description: "Greets people.",
		Actions: []tea.Action{
			tea.NewAction("greeter.hello", "Greets a person.", hello, tea.Idempotent(), tea.Reads()),
			tea.NewAction("greeter.spell", "Spells a text, letter by letter.", spell, tea.Streaming()),
			tea.NewAction("greeter.relay", "Calls another action and returns its result.", relay),
		},
	}
}

// The schema of the parameters comes from the struct and its tags.
type helloParams struct {
	Name string `json:"name" doc:"who is greeted" minLength:"1" maxLength:"100"`
	Tone string `json:"tone,omitempty" doc:"how" enum:"plain,loud" default:"plain"`
}

type helloResult struct {
	Text string `json:"text" doc:"the greeting"`
}

// hello returns a result or an error; the type of the error determines how the
// workflow can handle it.
func hello(_ context.Context, _ *tea.Request, p helloParams) (helloResult, error) {
	if strings.EqualFold(p.Name, "nobody") {
		return helloResult{}, tea.Errorf(tea.NotFound, "there is no person called %q", p.Name)
	}
	text := "Hello, " + p.Name + "!"
	if p.Tone == "loud" {
		text = strings.ToUpper(text)
	}
	return helloResult{Text: text}, nil
}

type spellParams struct {
	Text string `json:"text" doc:"the text to spell"`
}

type spellResult struct {
	Letters int `json:"letters" doc:"the number of letters"`
}

// spell emits tokens while it runs. It ends when the call is canceled.
func spell(ctx context.Context, req *tea.Request, p spellParams) (spellResult, error) {
	letters := []rune(p.Text)
	for i, letter := range letters {
		if err := ctx.Err(); err != nil {
			return spellResult{}, err
		}
		req.Host.Token(ctx, string(letter))
		req.Host.Progress(ctx, float64(i+1)/float64(len(letters)), "spelling")
	}
	return spellResult{Letters: len(letters)}, nil
}

type relayParams struct {
	Action string         `json:"action" doc:"the name of the action"`
	Params map[string]any `json:"params,omitempty" doc:"its parameters"`
}

type relayResult struct {
	Result any `json:"result" doc:"its result"`
}

// relay calls another action through the host: of another plugin, of a Lua
// module or of the host itself.
func relay(ctx context.Context, req *tea.Request, p relayParams) (relayResult, error) {
	resp, err := req.Host.Invoke(ctx, p.Action, p.Params)
	if err != nil {
		return relayResult{}, err
	}
	result, err := resp.Result.Value()
	return relayResult{Result: result}, err
}
