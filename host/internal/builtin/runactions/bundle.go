// Package runactions has the actions that use the run they are called in:
// human.ask, workflow.run, checkpoint.save, secrets.get and secrets.mask. They
// access the run through the request's host, by the interfaces in this package.
package runactions

import (
	"context"

	"github.com/the-edge-agent/tea/host/internal/engine"
	tea "github.com/the-edge-agent/tea/sdk"
)

// The parts of a run that the actions use.
type (
	asker interface {
		Ask(ctx context.Context, q engine.Question) (answer any, timedOut bool, err error)
	}
	saver interface {
		SaveCheckpoint() (path string, err error)
	}
	runner interface {
		RunWorkflow(ctx context.Context, path string, input map[string]any) (map[string]any, error)
	}
	keyring interface {
		Secret(name string) (any, bool)
		Mask(v any) any
	}
)

// Bundles returns the four bundles.
func Bundles(version string) []*tea.Bundle {
	bundle := func(name, description string, actions ...tea.Action) *tea.Bundle {
		return &tea.Bundle{Name: name, Version: version, Description: description, Actions: actions}
	}
	return []*tea.Bundle{
		bundle("checkpoint", "Saves the run's checkpoint.", tea.NewAction("checkpoint.save",
			"Saves the run's checkpoint immediately.", save, tea.Idempotent(), tea.Repeated())),
		bundle("human", "Asks a person.", tea.NewAction("human.ask",
			"Asks a person a question and waits for the answer, also across a restart.", ask, tea.Idempotent(), tea.Repeated())),
		bundle("secrets", "Reads and masks secrets.",
			tea.NewAction("secrets.get", "Returns a secret by name; its value is masked in all output.", secret, tea.Idempotent(), tea.Repeated()),
			tea.NewAction(engine.MaskAction, "Masks the run's secrets in a value, for output that tea does not write itself.", mask, tea.Idempotent(), tea.Repeated())),
		bundle("workflow", "Runs other workflows.", tea.NewAction("workflow.run",
			"Runs another workflow file inside this run and returns its final state.", runWorkflow, tea.Repeated())),
	}
}

// partOf returns a part of the run of a request.
func partOf[T any](req *tea.Request) (T, error) {
	part, ok := req.Host.(T)
	if !ok {
		return part, tea.Errorf(tea.DependencyMissing, "%s works only in a run of a workflow", req.Action)
	}
	return part, nil
}

type saveResult struct {
	Success bool   `json:"success"`
	Path    string `json:"path" doc:"the checkpoint file"`
}

func save(_ context.Context, req *tea.Request, _ struct{}) (saveResult, error) {
	run, err := partOf[saver](req)
	if err != nil {
		return saveResult{}, err
	}
	path, err := run.SaveCheckpoint()
	return saveResult{Success: true, Path: path}, err
}

type secretParams struct {
	Name string `json:"name" doc:"name of the secret"`
}

type valueResult struct {
	Success bool `json:"success"`
	Value   any  `json:"value" doc:"the secret, or the masked value"`
}

func secret(_ context.Context, req *tea.Request, p secretParams) (valueResult, error) {
	run, err := partOf[keyring](req)
	if err != nil {
		return valueResult{}, err
	}
	v, ok := run.Secret(p.Name)
	if !ok {
		return valueResult{}, tea.Errorf(tea.NotFound, "unknown secret %q; pass it with --secrets or --secrets-env", p.Name)
	}
	return valueResult{Success: true, Value: v}, nil
}

type maskParams struct {
	Value any `json:"value" doc:"any value"`
}

func mask(_ context.Context, req *tea.Request, p maskParams) (valueResult, error) {
	run, err := partOf[keyring](req)
	if err != nil {
		return valueResult{}, err
	}
	return valueResult{Success: true, Value: run.Mask(p.Value)}, nil
}

type workflowParams struct {
	Path  string         `json:"path" doc:"workflow file, below the directory of the calling workflow and relative to it"`
	Input map[string]any `json:"input,omitempty" doc:"the input of the run"`
}

type workflowResult struct {
	Success bool           `json:"success"`
	State   map[string]any `json:"state" doc:"the final state"`
}

func runWorkflow(ctx context.Context, req *tea.Request, p workflowParams) (workflowResult, error) {
	run, err := partOf[runner](req)
	if err != nil {
		return workflowResult{}, err
	}
	state, err := run.RunWorkflow(ctx, p.Path, p.Input)
	return workflowResult{Success: true, State: state}, err
}
