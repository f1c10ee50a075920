package mcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
)

// acceptedFormat is the version of the file format.
const acceptedFormat = 1

// maxAccepted is the maximum size of the file.
const maxAccepted = 64 << 20

// Accepted is the file of accepted tools, and the result of mcp.describe_tools.
type Accepted struct {
	Format  int              `json:"format" doc:"version of this format: 1"`
	Servers []string         `json:"servers" doc:"the servers whose tools are described"`
	Actions []AcceptedAction `json:"actions" doc:"the tools as actions"`
}

// AcceptedAction is a tool as an action, with the digest of its definition.
type AcceptedAction struct {
	Name       string `json:"name"`
	Summary    string `json:"summary,omitempty"`
	Params     any    `json:"params,omitempty" doc:"JSON Schema"`
	Result     any    `json:"result,omitempty" doc:"JSON Schema"`
	Streaming  bool   `json:"streaming,omitempty"`
	Idempotent bool   `json:"idempotent,omitempty"`

	Server string `json:"server"`
	Tool   string `json:"tool" doc:"its name at the server"`
	Digest string `json:"digest" doc:"SHA-256 of its definition"`
}

// accepted reads the file of accepted tools on first use.
type accepted struct {
	path string

	once  sync.Once
	tools map[string]map[string]string // digests by server and tool; nil without the file
	err   error
}

// of returns the digests of a server's accepted tools by name; nil if the user
// has not accepted any tools yet.
func (a *accepted) of(server string) (map[string]string, error) {
	a.once.Do(func() {
		if a.err = a.read(); a.err != nil {
			a.err = tea.Errorf(tea.ValidationError, "the file of accepted tools %s: %w; `tea plugin refresh mcp --workflow FILE` replaces it", a.path, a.err)
		}
	})
	if a.err != nil || a.tools == nil {
		return nil, a.err
	}
	if tools := a.tools[server]; tools != nil {
		return tools, nil
	}
	return map[string]string{}, nil
}

func (a *accepted) read() error {
	if a.path == "" {
		return nil
	}
	f, err := os.Open(a.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxAccepted+1))
	if err != nil {
		return err
	}
	if len(text) > maxAccepted {
		return fmt.Errorf("it is larger than %d bytes", maxAccepted)
	}
	var file struct {
		Format  int
		Actions []struct{ Server, Tool, Digest string }
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	if file.Format != acceptedFormat {
		return fmt.Errorf("its format is %d, expected %d", file.Format, acceptedFormat)
	}
	a.tools = map[string]map[string]string{}
	for _, action := range file.Actions {
		if a.tools[action.Server] == nil {
			a.tools[action.Server] = map[string]string{}
		}
		a.tools[action.Server][action.Tool] = action.Digest
	}
	return nil
}
