package teatest_test

import (
	"context"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

// A Host answers for other actions and records what an action asks of it. Tests
// hand it to [teatest.Call] in a Request.
func ExampleHost() {
	type params struct {
		Question string `json:"question"`
	}
	bundle := tea.Bundle{Name: "guide", Version: "1.0.0", Actions: []tea.Action{
		tea.NewAction("guide.ask", "Asks a model.", func(ctx context.Context, req *tea.Request, p params) (map[string]any, error) {
			resp, err := req.Host.Invoke(ctx, "llm.call", map[string]any{"prompt": p.Question})
			if err != nil {
				return nil, err
			}
			var answer struct {
				Text string `json:"text"`
			}
			if err := resp.Result.Decode(&answer); err != nil {
				return nil, err
			}
			return map[string]any{"answer": answer.Text}, nil
		}),
	}}
	host := &teatest.Host{Actions: map[string]func(context.Context, any) (any, error){
		"llm.call": func(context.Context, any) (any, error) { return map[string]any{"text": "42"}, nil },
	}}
	ctx := context.Background()
	instance, err := bundle.NewInstance(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer instance.Close()
	resp, err := instance.Invoke(ctx, &tea.Request{Action: "guide.ask", Params: tea.ValuePayload(params{Question: "Why?"}), Host: host})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(resp.Result.Value())
	fmt.Println(host.Recorded().Invoked)
	// Output:
	// map[answer:42] <nil>
	// [{llm.call map[prompt:Why?]}]
}
