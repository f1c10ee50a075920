package python

import (
	"context"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

const settingsKey = "python"

// passed are the variables that workers and pip get besides settings.python.env.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "SYSTEMROOT", "TEMP", "APPDATA", "PATHEXT",
	"XDG_CACHE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE", "TEA_PLUGIN_PROCESS",
}

// Bundle is the set of actions, for serve.Main or for linking into a host.
func Bundle() tea.Bundle {
	run := tea.NewMethod("python.run", "Runs Python code with the state as input; what it returns is merged into the state.", (*Client).Run)
	run.Result = schema.With[any](`{"` + tea.Update + `": true}`)
	return tea.Bundle{
		Name:        "python",
		Version:     "0.1.0",
		Description: "Runs Python in processes of the machine's interpreter; off unless settings.python.enabled.",
		Settings:    map[string]*schema.Schema{settingsKey: schema.Of[Settings]()},
		Env:         []string{"TZ", "XDG_CACHE_HOME", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL", "PIP_CERT", "SSL_CERT_FILE"},
		Open:        func(_ context.Context, s tea.Settings) (any, error) { return open(s) },
		Actions: []tea.Action{
			run,
			tea.NewMethod("python.call", "Calls a function of a Python module; its return value is the result.", (*Client).Call),
		},
	}
}

// Settings are the settings under settings.python.
type Settings struct {
	Enabled        bool              `json:"enabled,omitempty" doc:"whether workflows can run Python"`
	Interpreter    string            `json:"interpreter,omitempty" doc:"the interpreter, looked up in PATH; default python3"`
	Version        string            `json:"version,omitempty" pattern:"^3\\.[0-9]{1,2}$" doc:"the lowest version that is accepted, such as 3.11"`
	Venv           string            `json:"venv,omitempty" format:"path" doc:"directory of a virtual environment, whose interpreter is used"`
	Requirements   []string          `json:"requirements,omitempty" doc:"packages that the code needs, as in requirements.txt; a missing one is an error unless install is set"`
	Install        bool              `json:"install,omitempty" doc:"installs the requirements with pip into the user's cache, once for each list of them"`
	Path           string            `json:"path,omitempty" format:"path" doc:"directory of the modules that the code can import besides the installed ones"`
	Dir            string            `json:"dir,omitempty" format:"path" doc:"working directory; default: the root directory"`
	Env            map[string]string `json:"env,omitempty" secret:"true" doc:"environment variables of the code"`
	TimeoutSeconds float64           `json:"timeout_seconds,omitempty" default:"60" minimum:"0.1" maximum:"86400" doc:"limit for one call; then the worker is killed with the processes that it has started"`
	MemoryMB       int               `json:"memory_mb,omitempty" default:"1024" minimum:"64" maximum:"1048576" doc:"limit for the memory of a worker in MiB (Linux)"`
	MaxOutputBytes int               `json:"max_output_bytes,omitempty" default:"1048576" minimum:"0" maximum:"67108864" doc:"limit for what one call prints"`
	Workers        int               `json:"workers,omitempty" default:"4" minimum:"1" maximum:"64" doc:"maximum number of worker processes"`
}

// RunParams are the parameters of python.run.
type RunParams struct {
	Code            string         `json:"code" doc:"Python code; it sees state, data, parallel_results, actions, json, datetime and requests, and can return a dict"`
	State           map[string]any `json:"state,omitempty" doc:"the variable state, usually \"{{ state }}\"; a missing key is None"`
	Data            map[string]any `json:"data,omitempty" doc:"the variable data"`
	ParallelResults []any          `json:"parallel_results,omitempty" doc:"the variable parallel_results, in a fan-in node"`
}

// CallParams are the parameters of python.call.
type CallParams struct {
	Module   string         `json:"module" doc:"name of the module, in settings.python.path or installed"`
	Function string         `json:"function" doc:"name of the function"`
	Args     []any          `json:"args,omitempty" doc:"its arguments by position"`
	Kwargs   map[string]any `json:"kwargs,omitempty" doc:"its arguments by name"`
}

// Run runs code.
func (c *Client) Run(ctx context.Context, req *tea.Request, p RunParams) (any, error) {
	return c.do(ctx, req, p)
}

// Call calls a function.
func (c *Client) Call(ctx context.Context, req *tea.Request, p CallParams) (any, error) {
	return c.do(ctx, req, p)
}
