// Command embed runs a tea workflow inside of a Go program: functions of the
// program are the workflow's actions, and the program answers its questions.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"sync"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

//go:embed flow.yaml
var definition []byte

// tank is the state that the program controls.
type tank struct {
	mu      sync.Mutex
	percent float64
}

type level struct {
	Percent float64 `json:"percent" doc:"how full the tank is"`
}

type drainParams struct {
	Percent float64 `json:"percent" doc:"how much to let out" minimum:"0" maximum:"20"`
}

func (t *tank) level(context.Context, *tea.Request, struct{}) (level, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return level{t.percent}, nil
}

func (t *tank) drain(_ context.Context, _ *tea.Request, p drainParams) (level, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.percent = max(0, t.percent-p.Percent)
	return level{t.percent}, nil
}

// actions are typed functions: their schemas come from the structs, and a
// wrong parameter is found when the workflow is loaded. host.Func takes a
// function on plain maps instead.
func (t *tank) actions() []tea.Action {
	return []tea.Action{
		tea.NewAction("tank.level", "Measures how full the tank is.", t.level, tea.Idempotent()),
		tea.NewAction("tank.drain", "Lets some of the tank out.", t.drain),
	}
}

// control runs the workflow; ask answers its questions.
func control(ctx context.Context, t *tank, target float64, ask func(question string) bool) (*flow.Result, error) {
	h, err := host.New(host.Options{Actions: t.actions()})
	if err != nil {
		return nil, err
	}
	defer h.Close()
	wf, err := h.Parse("flow.yaml", definition, host.LoadOptions{})
	if err != nil {
		return nil, err
	}
	defer wf.Close()
	return wf.Run(ctx, host.RunOptions{
		Input: map[string]any{"target": target},
		Ask:   func(_ context.Context, i flow.Interrupt) (any, error) { return ask(i.Question), nil },
		Events: func(e flow.Event) {
			if e.Type == flow.EventNodeEnd {
				fmt.Println("done:", e.Path)
			}
		},
	})
}

func main() {
	t := &tank{percent: 85}
	res, err := control(context.Background(), t, 40, func(question string) bool {
		fmt.Println(question, "- yes")
		return true
	})
	if err == nil {
		err = res.Err
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("level:", res.State["level"])
}
