package engine

import (
	"errors"

	"github.com/the-edge-agent/tea/host/internal/engine/replay"
	"github.com/the-edge-agent/tea/internal/execpath"
	tea "github.com/the-edge-agent/tea/sdk"
)

func (r *run) append(path execpath.Path, rec replay.Record) error {
	if r.o.Journal == nil {
		return nil
	}
	sealed, err := replay.Encode(path, rec, r.o.Secrets)
	if err != nil {
		return err
	}
	sealed.Time = r.now()
	if err := r.o.Journal.Append(sealed); err != nil {
		return &journalError{err}
	}
	return nil
}

// journalError reports that the checkpoint cannot be written. The run stops,
// whatever the node's policy is.
type journalError struct{ err error }

func (e *journalError) Error() string { return "write the checkpoint: " + e.err.Error() }
func (e *journalError) Unwrap() error { return e.err }

// failureFields returns an error as workflows see it.
func failureFields(e *tea.Error) map[string]any { return replay.NewFailure(e).Fields() }

// ErrNothingFailed is the error of a retry without failed branches.
var ErrNothingFailed = errors.New("nothing to retry: no branch of the run has failed")

// beginRetry durably revokes the outcomes of failed branches before anything runs.
func (r *run) beginRetry() error {
	if !r.o.RetryFailed || len(r.o.Replay) == 0 {
		return nil
	}
	done := r.replay.Done
	paths := r.replay.Retry(r.o.Replay[len(r.o.Replay)-1].Seq)
	if len(paths) == 0 {
		if done {
			return ErrNothingFailed
		}
		return nil
	}
	return r.append("", &replay.Retry{Paths: paths})
}
