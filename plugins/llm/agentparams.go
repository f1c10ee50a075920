package llm

import (
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Agent defines an agent.
type Agent struct {
	Description  string         `json:"description,omitempty" doc:"what the agent can do, for the agents that can delegate or hand off to it"`
	Instructions string         `json:"instructions,omitempty" doc:"what the agent is told before the conversation"`
	Model        string         `json:"model,omitempty" doc:"name of the model, or provider/model; default: settings.llm.model"`
	Fallbacks    []Fallback     `json:"fallbacks,omitempty" doc:"models or servers to ask in turn when a request fails; default: settings.llm.fallbacks, [] = none"`
	Temperature  *float64       `json:"temperature,omitempty" minimum:"0" doc:"0 = always the most likely token"`
	MaxTokens    int            `json:"max_tokens,omitempty" minimum:"1" doc:"limit for the length of one answer"`
	Tools        []ToolSpec     `json:"tools,omitempty" doc:"names of actions, or objects {name, description, parameters, action, approval}; mcp.SERVER.* is all tools of an MCP server"`
	Agents       []string       `json:"agents,omitempty" keyOf:"/agents" doc:"names of agents in settings.llm.agents to which the agent can delegate a task"`
	HandOff      []string       `json:"hand_off,omitempty" keyOf:"/agents" doc:"names of agents in settings.llm.agents to which the agent can hand off the conversation"`
	Skills       []SkillDir     `json:"skills,omitempty" doc:"directories with skills: each contains SKILL.md, or directories that do; absolute paths in parameters"`
	Todo         bool           `json:"todo,omitempty" doc:"the agent keeps a list of what it has to do"`
	Memory       bool           `json:"memory,omitempty" doc:"the agent keeps notes in the memory and finds them in later calls; needs the plugin memory"`
	Output       map[string]any `json:"output,omitempty" doc:"JSON Schema; the last answer is parsed, checked against it and returned as data"`
	Approve      []Rule         `json:"approve,omitempty" doc:"rules for calls of tools; the first that matches counts, without one the approval of the tool"`
	Limits       Limits         `json:"limits,omitzero" doc:"limits for one call of the agent"`
}

// Limits bound one call of an agent.
type Limits struct {
	Rounds      int     `json:"rounds,omitempty" minimum:"1" doc:"number of rounds in which the agent may call tools; default 10"`
	Tokens      int     `json:"tokens,omitempty" minimum:"1" doc:"tokens of all requests, those of delegated tasks included; default: no limit"`
	USD         float64 `json:"usd,omitempty" minimum:"0" doc:"cost of all requests whose model has a price; default: no limit"`
	Seconds     float64 `json:"seconds,omitempty" minimum:"0" doc:"time after which no request is made; an interruption of the run does not count; default: no limit"`
	Depth       *int    `json:"depth,omitempty" minimum:"0" doc:"levels of delegation below the agent; default 3, 0 = the agent does not delegate"`
	Context     int     `json:"context,omitempty" minimum:"100" doc:"estimated tokens of a request: above it, old results of tools are removed, then old rounds are replaced by a summary; default: no limit"`
	ResultBytes int     `json:"result_bytes,omitempty" minimum:"100" doc:"limit for what the agent sees of a tool's result; the rest is cut off; default 20000"`
}

// SkillDir is the path of a directory.
type SkillDir string

// JSONSchema marks the path, which the host makes absolute in settings.
func (SkillDir) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string"}, Format: "path"}
}

// AgentRef is an agent in a call: the name of one in the settings, or a definition.
type AgentRef struct {
	name string // "" for a definition
	Agent
}

// JSONSchema describes both forms. Names of agents in a definition are checked when it is
// called, because the schema of parameters cannot refer to settings.
func (AgentRef) JSONSchema() *schema.Schema {
	definition := schema.Of[Agent]()
	for _, name := range []string{"agents", "hand_off"} {
		definition.Properties.Get(name).Items = &schema.Schema{Type: schema.Types{"string"}}
	}
	return &schema.Schema{AnyOf: []*schema.Schema{{Type: schema.Types{"string"}}, definition}}
}

// UnmarshalJSON reads both forms.
func (a *AgentRef) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &a.name) == nil {
		return nil
	}
	return json.Unmarshal(data, &a.Agent)
}

// agent returns an agent of the settings.
func (s *Settings) agent(name string) (*Agent, error) {
	if a, ok := s.Agents[name]; ok {
		return &a, nil
	}
	names := make([]string, 0, len(s.Agents))
	for known := range s.Agents {
		names = append(names, known)
	}
	return nil, tea.Errorf(tea.ValidationError, "there is no agent %q in settings.llm.agents%s", name, diag.Ending(name, names))
}

// AgentParams are the parameters of agent.run.
type AgentParams struct {
	Agent    AgentRef       `json:"agent" doc:"name of an agent in settings.llm.agents, or a definition"`
	Prompt   string         `json:"prompt,omitempty" doc:"the task; follows messages"`
	Messages []chat.Message `json:"messages,omitempty" doc:"the conversation so far, such as messages of an earlier result"`
	Session  string         `json:"session,omitempty" maxLength:"200" doc:"continue the conversation with this id, which the memory keeps; instead of messages, and for one call at a time"`
	Stream   bool           `json:"stream,omitempty" doc:"emit tokens as they arrive"`
	From     Delegation     `json:"from,omitzero" doc:"set by an agent that delegates a task"`
}

// Delegation is what a delegated task takes over from the agents above it.
type Delegation struct {
	Approve [][]Rule `json:"approve,omitempty" doc:"the rules of each; the strictest decision counts"`
	Limits  Limits   `json:"limits,omitzero" doc:"what is left of their limits"`
}

// AgentResult is the answer of an agent.
type AgentResult struct {
	Success      bool           `json:"success"`
	Content      string         `json:"content" doc:"the text of the last answer"`
	Data         any            `json:"data,omitempty" doc:"the parsed answer, if the agent has an output schema"`
	Agent        string         `json:"agent" doc:"the agent that answered; after a hand-off another one than was called; empty for a definition in the call"`
	FinishReason string         `json:"finish_reason" doc:"as of llm.tools"`
	Model        string         `json:"model"`
	Rounds       int            `json:"rounds" doc:"number of rounds in which the agent called tools"`
	Usage        chat.Usage     `json:"usage" doc:"tokens of all requests, those of delegated tasks included"`
	CostUSD      *float64       `json:"cost_usd,omitempty" doc:"cost of the requests whose model has a price; absent where none has"`
	ToolResults  []ToolResult   `json:"tool_results" doc:"all calls of tools, in order"`
	Todo         []TodoItem     `json:"todo,omitempty" doc:"the list of the agent"`
	Messages     []chat.Message `json:"messages" doc:"the conversation without instructions, for the next call; without what limits.context has removed"`
}
