package host

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/host/checkpoints"
	"github.com/the-edge-agent/tea/host/internal/engine"
	"github.com/the-edge-agent/tea/host/internal/engine/replay"
)

// StateAt computes the state of a run of this workflow after a record, from the
// checkpoint alone, without running anything. Secrets are replaced by ***. It
// does not include updates of a branch, loop or subgraph that had not ended at
// the record. The error is [ErrWorkflowChanged] for a run of another version of
// the workflow, and [checkpoints.ErrNoStep] if the run has no such record.
func (wf *Workflow) StateAt(ctx context.Context, c *checkpoints.Contents, step uint64) (map[string]any, error) {
	h := c.Header
	if h.Digest != wf.spec.Digest {
		return nil, fmt.Errorf("run %s: %w", h.RunID, ErrWorkflowChanged)
	}
	last := uint64(len(c.Records))
	if step < 1 || step > last {
		return nil, fmt.Errorf("run %s: %w: it has records 1 to %d", h.RunID, checkpoints.ErrNoStep, last)
	}
	eo, err := wf.engineOptions(RunOptions{RunID: h.RunID})
	if err != nil {
		return nil, err
	}
	eo.Replay, eo.StartedAt = replay.Masked(c.Records[:step]), h.StartedAt
	state, err := engine.StateAt(ctx, eo)
	if err != nil {
		return nil, fmt.Errorf("compute the state of run %s at step %d: %w", h.RunID, step, err)
	}
	return state, nil
}
