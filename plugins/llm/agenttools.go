package llm

import (
	"fmt"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Names of an agent's own tools.
const (
	delegateTo = "delegate_"
	handOffTo  = "hand_off_"
	todoWrite  = "todo_write"
	skillRead  = "skill_read"
)

// TodoItem is an entry of the list that an agent keeps.
type TodoItem struct {
	Task   string `json:"task"`
	Status string `json:"status"`
}

// object returns the schema of a tool's arguments: required texts by name and
// description in turn.
func object(members ...string) map[string]any {
	properties, required := map[string]any{}, []any{}
	for i := 0; i+1 < len(members); i += 2 {
		properties[members[i]] = map[string]any{"type": "string", "description": members[i+1]}
		required = append(required, members[i])
	}
	return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// ownTools returns the tools of the agent called name in addition to its actions.
func (a *agent) ownTools(name string, d *Agent, skills []skill) ([]tool, error) {
	var tools []tool
	for _, member := range d.Agents {
		other, err := a.client.settings.agent(member)
		if err != nil {
			return nil, err
		}
		if a.depth > 0 {
			tools = append(tools, a.delegation(member, other))
		}
	}
	for _, member := range d.HandOff {
		other, err := a.client.settings.agent(member)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool{
			name: handOffTo + member, handOff: member,
			wire: chat.Tool{Description: "Hands the conversation off to the agent " + member + ", which continues it. " + other.Description, Parameters: object("reason", "why the other agent continues")},
			run:  func(map[string]any) (string, error) { return "The agent " + member + " continues.", nil },
		})
	}
	if len(skills) > 0 {
		parameters := object("name", "name of the skill")
		parameters["properties"].(map[string]any)["path"] = map[string]any{"type": "string", "description": "file in the directory of the skill; default SKILL.md"}
		tools = append(tools, tool{
			name: skillRead, wire: chat.Tool{Description: "Reads a skill, or a file that it refers to.", Parameters: parameters},
			run: func(arguments map[string]any) (string, error) { return readSkill(skills, arguments) },
		})
	}
	if d.Todo {
		tools = append(tools, tool{
			name: todoWrite, isTodo: true, wire: chat.Tool{Description: "Replaces the list of what you have to do. Write it before work of several steps, and again when a step begins or is done.", Parameters: todoParameters()},
			run: func(arguments map[string]any) (string, error) { return todoLine(todoOf(arguments)), nil },
		})
	}
	if d.Memory {
		tools = append(tools, memoryTools(name)...)
	}
	return tools, nil
}

// delegation returns the tool that gives a task to another agent, which runs one level
// deeper in a conversation of its own.
func (a *agent) delegation(name string, other *Agent) tool {
	return tool{
		name: delegateTo + name, action: "agent.run",
		wire: chat.Tool{Description: "Gives a task to the agent " + name + " and returns its answer. " + other.Description, Parameters: object("task", "the complete task: the agent does not see this conversation")},
		params: func(arguments map[string]any) map[string]any {
			return map[string]any{"agent": name, "prompt": arguments["task"], "from": a.delegated()}
		},
		result: func(p tea.Payload) ([]byte, error) {
			var r AgentResult
			if err := p.Decode(&r); err != nil {
				return nil, tea.Errorf(tea.InternalError, "result of agent.run: %w", err)
			}
			a.count(r.Usage, r.CostUSD)
			if r.Data != nil {
				return value.Encode(r.Data)
			}
			return []byte(r.Content), nil
		},
	}
}

// delegated returns what a delegated task takes over.
func (a *agent) delegated() Delegation {
	depth := a.depth - 1
	left := Limits{Depth: &depth}
	tokens, usd := a.spent()
	const least = 1e-9 // a limit that is used up must not become none
	if a.limits.Tokens > 0 {
		left.Tokens = max(1, a.limits.Tokens-tokens)
	}
	if a.limits.USD > 0 {
		left.USD = max(least, a.limits.USD-usd)
	}
	if a.limits.Seconds > 0 {
		left.Seconds = max(least, a.limits.Seconds-time.Since(a.start).Seconds())
	}
	return Delegation{Approve: a.allRules(), Limits: left}
}

// wireSpecs returns tools as parameters of llm.call.
func wireSpecs(tools []chat.Tool) []any {
	known := argumentsSchema().Properties
	specs := make([]any, len(tools))
	for i, t := range tools {
		parameters, _ := t.Parameters.(map[string]any)
		kept := map[string]any{}
		for keyword, v := range parameters {
			// llm.call refuses other members, which tools of MCP servers can have.
			if known.Get(keyword) != nil || strings.HasPrefix(keyword, "x-") {
				kept[keyword] = v
			}
		}
		specs[i] = map[string]any{"name": t.Name, "description": t.Description, "parameters": kept}
	}
	return specs
}

func todoParameters() map[string]any {
	item := object("task", "what is to do")
	item["properties"].(map[string]any)["status"] = map[string]any{"enum": []any{"pending", "active", "done"}}
	item["required"] = []any{"task", "status"}
	return map[string]any{
		"type": "object", "required": []any{"items"}, "additionalProperties": false,
		"properties": map[string]any{"items": map[string]any{"type": "array", "maxItems": int64(100), "items": item}},
	}
}

// todoOf returns the list in the arguments of a call, which were checked.
func todoOf(arguments any) []TodoItem {
	var list struct {
		Items []TodoItem `json:"items"`
	}
	if value.Into(arguments, &list) != nil {
		return nil
	}
	return list.Items
}

// todoLine describes a list in one line.
func todoLine(items []TodoItem) string {
	done, active := 0, ""
	for _, item := range items {
		switch item.Status {
		case "done":
			done++
		case "active":
			active = "; now: " + item.Task
		}
	}
	return fmt.Sprintf("todo: %d of %d done%s", done, len(items), active)
}
