package codeactions

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/the-edge-agent/tea/host/internal/script"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Run is the main function of the child process of code.execute: it reads one
// job, limits itself, runs the code and writes the answer.
func Run(in io.Reader, out io.Writer) error {
	var j job
	if err := json.NewDecoder(in).Decode(&j); err != nil {
		return fmt.Errorf("read the job: %w", err)
	}
	if err := confineSelf(j.Memory, j.Timeout); err != nil {
		return err
	}
	debug.SetMemoryLimit(j.Memory)
	return json.NewEncoder(out).Encode(evaluate(j))
}

func evaluate(j job) answer {
	started := time.Now()
	var printed bytes.Buffer
	cut := false
	v, err := runScript(j, func(_ slog.Level, message string, _ map[string]any) {
		room := j.MaxOutput - printed.Len()
		if len(message)+1 > room {
			cut = true
			message = message[:max(room-1, 0)]
		}
		if room > 0 {
			printed.WriteString(message + "\n")
		}
	})
	a := answer{Stdout: printed.String(), Elapsed: time.Since(started)}
	if err == nil {
		a.Value, err = value.Encode(v)
	}
	switch {
	case err != nil:
		a.Error, a.ErrorType = err.Error(), errorType(err)
	case cut:
		a.Error, a.ErrorType = fmt.Sprintf("the output exceeds max_output_bytes (%d)", j.MaxOutput), tea.ResourceExhausted
	}
	return a
}

// maxString bounds a string if there is enough memory. Without the bound, a few
// strings can reach the kernel's limit, which kills the process before the
// sandbox detects them.
const maxString = 16 << 20

func runScript(j job, log func(slog.Level, string, map[string]any)) (any, error) {
	input, err := value.Decode(j.Input)
	if err != nil {
		return nil, fmt.Errorf("decode input: %w", err)
	}
	lua := script.New(script.Options{Timeout: j.Timeout, MemoryBytes: j.Memory, MaxString: int(min(maxString, j.Memory/4))})
	chunk, err := lua.Compile(script.Source{Name: "code", Line: 1, Text: j.Code})
	if err != nil {
		return nil, err
	}
	return chunk.Run(context.Background(), script.Env{Globals: script.Values{"input": input}, Log: log})
}

func errorType(err error) tea.ErrorType {
	var run *script.RunError
	if errors.As(err, &run) {
		return run.Type()
	}
	var syntax *script.SyntaxError
	if errors.As(err, &syntax) {
		return tea.ValidationError
	}
	return tea.AsError(err).Type
}
