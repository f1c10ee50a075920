package codeactions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// job is the child's standard input.
type job struct {
	Code      string          `json:"code"`
	Input     json.RawMessage `json:"input"`
	Timeout   time.Duration   `json:"timeout"`
	Memory    int64           `json:"memory"`
	MaxOutput int             `json:"max_output"`
}

// answer is the child's standard output.
type answer struct {
	Value     json.RawMessage `json:"value,omitempty"`
	Stdout    string          `json:"stdout,omitempty"`
	Elapsed   time.Duration   `json:"elapsed"`
	Error     string          `json:"error,omitempty"`
	ErrorType tea.ErrorType   `json:"error_type,omitempty"`
}

const (
	// grace is the additional time, after the code's deadline, in which the child
	// starts and reports.
	grace = 2 * time.Second
	// most bounds the child's answer.
	most = 64 << 20
	// goFatal is the exit code of a fatal error of Go's runtime, which cannot
	// always print the reason if memory is exhausted.
	goFatal = 2
)

// spawn runs one job in a child process.
func (r *runner) spawn(ctx context.Context, j job) (result, error) {
	in, err := json.Marshal(j)
	if err != nil {
		return result{}, fmt.Errorf("encode the job: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, j.Timeout+grace)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	cmd.Stdin = bytes.NewReader(in)
	cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=none"}
	cmd.Dir = os.TempDir()
	childproc.Group(cmd)
	childproc.EndWithParent(cmd)
	out, last := &bounded{most: most}, &bounded{most: 4 << 10}
	cmd.Stdout, cmd.Stderr = out, last
	err = cmd.Run()
	var a answer
	if decodeErr := json.Unmarshal(out.Bytes(), &a); decodeErr != nil || err != nil {
		return result{}, childFailure(ctx, j, err, last.String())
	}
	if a.Error != "" {
		e := tea.Errorf(a.ErrorType, "%s", a.Error)
		e.Retryable = false
		if a.Stdout != "" {
			e.Details = map[string]any{"stdout": a.Stdout}
		}
		return result{}, e
	}
	v, err := value.Decode(a.Value)
	if err != nil {
		return result{}, tea.Errorf(tea.InternalError, "the child process did not return JSON: %w", err)
	}
	return result{Success: true, ReturnValue: v, Stdout: a.Stdout, ExecutionTimeMS: float64(a.Elapsed.Microseconds()) / 1000}, nil
}

// childFailure returns the error for a child that ended without an answer.
func childFailure(ctx context.Context, j job, err error, stderr string) error {
	var exit *exec.ExitError
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e := tea.Errorf(tea.Timeout, "the code exceeded its time limit of %s and was killed", j.Timeout)
		e.Retryable = false
		return e
	case ctx.Err() != nil:
		return tea.Errorf(tea.Canceled, "the code was stopped")
	case strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate"):
		return tea.Errorf(tea.ResourceExhausted, "the code exceeded %d MiB of memory and was killed", j.Memory>>20)
	case errors.As(err, &exit) && exit.ExitCode() == goFatal:
		return tea.Errorf(tea.ResourceExhausted, "the code's process crashed, probably because it exceeded %d MiB of memory: %s", j.Memory>>20, firstLine(stderr))
	case errors.As(err, &exit):
		return tea.Errorf(tea.InternalError, "the code's process ended with %s: %s", exit, firstLine(stderr))
	case err != nil:
		return tea.Errorf(tea.DependencyMissing, "start the child process: %w", err)
	}
	return tea.Errorf(tea.InternalError, "the code's process ended without an answer: %s", firstLine(stderr))
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// bounded keeps the first bytes that are written to it.
type bounded struct {
	bytes.Buffer
	most int
}

// Write never fails: a full buffer must not stop the child.
func (b *bounded) Write(p []byte) (int, error) {
	if room := b.most - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
