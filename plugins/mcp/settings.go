package mcp

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// Settings are the settings under settings.mcp.
type Settings struct {
	Servers   Servers `json:"servers,omitempty" doc:"the MCP servers by name; a name has lower-case letters and digits"`
	ToolsFile string  `json:"tools_file,omitempty" default:"mcp-tools.json" format:"path" doc:"file of the accepted tools, which tea plugin refresh mcp --workflow FILE writes"`
}

// Server is an MCP server: a command that uses the protocol on its standard input and
// output, or the address of a server that uses it over HTTP.
type Server struct {
	Command string            `json:"command,omitempty" doc:"program to start, looked up in PATH"`
	Args    []string          `json:"args,omitempty" doc:"its arguments"`
	Env     map[string]string `json:"env,omitempty" secret:"true" doc:"its environment, besides PATH, HOME, USER, LOGNAME, LANG, LC_ALL, LC_CTYPE, TZ and TMPDIR"`
	Dir     string            `json:"dir,omitempty" format:"path" doc:"its working directory; default: tea's"`

	URL     string            `json:"url,omitempty" doc:"address of a server that speaks streamable HTTP"`
	Headers map[string]string `json:"headers,omitempty" secret:"true" doc:"further HTTP headers"`
	Token   string            `json:"token,omitempty" secret:"true" doc:"OAuth access token or API key, sent as a bearer token"`
	OAuth   *OAuth            `json:"oauth,omitempty" doc:"gets access tokens with the OAuth client credentials of this client"`

	StartTimeoutSeconds float64  `json:"start_timeout_seconds,omitempty" default:"30" minimum:"0.1" maximum:"600" doc:"limit for the time until the server is ready"`
	TimeoutSeconds      float64  `json:"timeout_seconds,omitempty" default:"300" minimum:"0.1" maximum:"86400" doc:"limit for one call"`
	MaxConcurrentCalls  int      `json:"max_concurrent_calls,omitempty" default:"8" minimum:"1" maximum:"1000" doc:"calls that the server gets at the same time, others wait"`
	MaxResultBytes      int      `json:"max_result_bytes,omitempty" default:"4194304" minimum:"100" maximum:"16777216" doc:"limit for a result; the rest is cut off"`
	MemoryMB            int      `json:"memory_mb,omitempty" minimum:"16" doc:"limit for the memory of the process on Linux; default: the plugin's"`
	CPU                 int      `json:"cpu,omitempty" minimum:"1" doc:"number of processors that the process can use on Linux; default: the plugin's"`
	ProtocolVersion     string   `json:"protocol_version,omitempty" default:"2026-07-28" enum:"2026-07-28,2025-11-25" doc:"newest version of the protocol to use; 2025-11-25 for a server that can ask questions only during a call"`
	Elicitation         string   `json:"elicitation,omitempty" default:"ask" enum:"ask,decline" doc:"what happens to questions of the server: a person is asked, or they are declined"`
	Sampling            Sampling `json:"sampling,omitzero" doc:"requests of the server to a language model"`
}

// OAuth are the credentials of the client credentials grant.
type OAuth struct {
	ClientID     string `json:"client_id" doc:"identifier of this client"`
	ClientSecret string `json:"client_secret" secret:"true" doc:"its secret"`
	Issuer       string `json:"issuer,omitempty" doc:"the authorization server that gets the secret; default: one on the host of the MCP server"`
}

// Sampling are the limits for a server that uses the workflow's language model.
type Sampling struct {
	Enabled     bool   `json:"enabled,omitempty" doc:"lets the server use llm.call"`
	Model       string `json:"model,omitempty" doc:"model for it; default: the one in settings.llm"`
	MaxTokens   int    `json:"max_tokens,omitempty" default:"1000" minimum:"1" doc:"limit for one answer"`
	MaxRequests int    `json:"max_requests,omitempty" default:"5" minimum:"1" maximum:"1000" doc:"limit for the requests during one call"`
}

// Servers are the servers by name.
type Servers map[string]Server

// JSONSchema adds the pattern of names.
func (Servers) JSONSchema() *schema.Schema {
	return &schema.Schema{
		Type: schema.Types{"object"}, AdditionalProperties: schema.Of[Server](),
		Extra: map[string]any{"propertyNames": map[string]any{"pattern": namePattern}},
	}
}

const (
	// namePattern keeps the names of servers and tools in mcp.SERVER_TOOL
	// distinguishable.
	namePattern = "^[a-z][a-z0-9]{0,31}$"
	// Defaults of settings that were not decoded from JSON.
	defaultStartTimeout = 30
	defaultTimeout      = 300
)

var validName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(namePattern) })

// taken are the names for which mcp.SERVER_TOOL could be another action.
var taken = []string{"list", "read", "get", "describe"}

// check returns a mistake in a server's settings that the schema cannot express.
func (s Server) check(name string) error {
	path := fmt.Sprintf("settings.mcp.servers.%s", name)
	switch {
	case !validName().MatchString(name):
		return tea.Errorf(tea.ValidationError, "%s: the name of a server has lower-case letters and digits", path)
	case slices.Contains(taken, name):
		return tea.Errorf(tea.ValidationError, "%s: the name %q is taken by actions of the bundle; choose another one", path, name)
	case (s.Command == "") == (s.URL == ""):
		return tea.Errorf(tea.ValidationError, "%s needs either command or url", path)
	case s.URL == "" && (s.Token != "" || s.Headers != nil || s.OAuth != nil):
		return tea.Errorf(tea.ValidationError, "%s: headers, token and oauth need url", path)
	case s.Command == "" && (s.Args != nil || s.Env != nil || s.Dir != "" || s.MemoryMB > 0 || s.CPU > 0):
		return tea.Errorf(tea.ValidationError, "%s: args, env, dir, memory_mb and cpu need command", path)
	case s.Token != "" && s.OAuth != nil:
		return tea.Errorf(tea.ValidationError, "%s: use either token or oauth", path)
	case s.URL == "":
		return nil
	}
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return tea.Errorf(tea.ValidationError, "%s.url: expected an address that begins with http:// or https://", path)
	}
	return nil
}

func (s Server) startTimeout() time.Duration {
	return seconds(cmp.Or(s.StartTimeoutSeconds, defaultStartTimeout))
}

func (s Server) timeout() time.Duration { return seconds(cmp.Or(s.TimeoutSeconds, defaultTimeout)) }

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
