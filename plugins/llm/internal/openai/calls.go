package openai

import (
	"encoding/json"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
)

// callPart is a tool call or a piece of one.
type callPart struct {
	Index    *place   `json:"index"`
	ID       word     `json:"id"`
	Function function `json:"function"`
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// calls puts tool calls together from their pieces.
type calls struct{ open []*openCall }

type openCall struct {
	index     *place
	id, name  string
	arguments strings.Builder
}

func (p callPart) hasArguments() bool {
	return p.Function.Name != "" && chat.ArgumentsText(p.Function.Arguments) != ""
}

// complete tells whether the arguments so far are a whole JSON value.
func (c *openCall) complete() bool { return json.Valid([]byte(c.arguments.String())) }

func (c *calls) add(part callPart) {
	call := c.find(part)
	if call == nil {
		c.begin(part)
		return
	}
	call.add(part)
}

// begin adds a call that goes on with none of those before it.
func (c *calls) begin(part callPart) {
	call := &openCall{index: part.Index}
	call.add(part)
	c.open = append(c.open, call)
}

func (c *openCall) add(part callPart) {
	if c.id == "" {
		c.id = string(part.ID)
	}
	if name := part.Function.Name; name != c.name {
		c.name += name
	}
	c.arguments.WriteString(chat.ArgumentsText(part.Function.Arguments))
}

// find gives the call that a piece goes on with; nil where it begins one.
// The standard goes by index. Servers leave it out, or number all their calls
// 0; then the id tells calls apart, and without ids, or with the same id for
// all, a name that comes when the call before has all its arguments.
func (c *calls) find(part callPart) *openCall {
	id := string(part.ID)
	for i := len(c.open) - 1; i >= 0; i-- {
		call := c.open[i]
		switch {
		case part.Index != nil && call.index != nil && *part.Index != *call.index:
			continue
		case id != "" && call.id != "" && id != call.id:
			continue
		case id != "" && id == call.id && !(part.hasArguments() && call.complete()):
			return call
		case part.Function.Name != "" && call.complete():
			continue
		case part.Function.Name != "" && call.name != "" && part.Index == nil && part.Function.Name != call.name:
			continue
		}
		return call
	}
	return nil
}

func (c *calls) list() []chat.ToolCall {
	var list []chat.ToolCall
	for i, call := range c.open {
		if call.arguments.Len() == 0 && (call.name == "" || c.repeats(i)) {
			continue
		}
		list = append(list, chat.ToolCall{ID: call.id, Name: call.name, Arguments: stream.Join(call.arguments.String())})
	}
	return list
}

// repeats tells whether a call without arguments is only the name of the one
// before it, which some servers send once more at the end.
func (c *calls) repeats(i int) bool {
	if i == 0 {
		return false
	}
	call, before := c.open[i], c.open[i-1]
	return call.id == "" && call.name == before.name && call.index != nil && before.index != nil && *call.index == *before.index && before.complete()
}
