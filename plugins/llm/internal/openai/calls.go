package openai

import (
	"encoding/json"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	"github.com/the-edge-agent/tea/sdk/value"
)

// callPart is a tool call or a piece of one.
type callPart struct {
	Index    *place   `json:"index"`
	ID       word     `json:"id"`
	Function function `json:"function"`
	extra    map[string]any
}

type function struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	extra     map[string]any
}

// UnmarshalJSON keeps unknown members, such as a thought signature.
func (p *callPart) UnmarshalJSON(data []byte) (err error) {
	type plain callPart
	*p = callPart{}
	if err := json.Unmarshal(data, (*plain)(p)); err != nil {
		return err
	}
	if string(data) == "null" {
		return nil
	}
	p.extra, err = chat.Unknown(data, "index", "id", "type", "function")
	p.extra = chat.WithFunction(p.extra, p.Function.extra)
	return err
}

// UnmarshalJSON keeps unknown members.
func (f *function) UnmarshalJSON(data []byte) (err error) {
	type plain function
	*f = function{}
	if err := json.Unmarshal(data, (*plain)(f)); err != nil || string(data) == "null" {
		return err
	}
	f.extra, err = chat.Unknown(data, "name", "arguments")
	return err
}

// size is the part's contribution to the size of the answer.
func (p callPart) size() int {
	size := len(p.ID) + len(p.Function.Name) + len(p.Function.Arguments)
	if len(p.extra) > 0 {
		if raw, err := value.Encode(p.extra); err == nil {
			size += len(raw)
		}
	}
	return size
}

// calls assembles tool calls from their pieces.
type calls struct{ open []*openCall }

type openCall struct {
	index     *place
	id, name  string
	arguments strings.Builder
	extra     chat.Extra
}

func (p callPart) hasArguments() bool {
	return p.Function.Name != "" && chat.ArgumentsText(p.Function.Arguments) != ""
}

// complete reports whether the arguments so far are a complete JSON value.
func (c *openCall) complete() bool {
	text := c.arguments.String()
	// Usually a piece ends inside of an object, which is cheap to detect.
	if end := strings.TrimRight(text, " \t\r\n"); strings.HasPrefix(text, "{") && !strings.HasSuffix(end, "}") {
		return false
	}
	return json.Valid([]byte(text))
}

func (c *calls) add(part callPart) {
	call := c.find(part)
	if call == nil && part.ID == "" && part.Function.Name == "" && len(c.open) > 0 {
		// Some servers number the pieces, not the calls.
		if last := c.open[len(c.open)-1]; !last.complete() || strings.TrimSpace(chat.ArgumentsText(part.Function.Arguments)) == "" {
			call = last
		}
	}
	if call == nil {
		c.begin(part)
		return
	}
	call.add(part)
}

// begin adds a new call.
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
	c.extra.Add(part.extra)
}

// find returns the call that a piece continues; nil if it begins one. The
// protocol identifies calls by index. Some servers omit it or number all their
// calls 0; then the id identifies a call. Without ids, or with one id for all, a
// name that arrives after complete arguments begins a call.
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
		list = append(list, chat.ToolCall{ID: call.id, Name: call.name, Arguments: stream.Join(call.arguments.String()), Extra: call.extra.Members()})
	}
	return list
}

// repeats reports whether a call without arguments only repeats the name of the
// previous one, as some servers do at the end.
func (c *calls) repeats(i int) bool {
	if i == 0 {
		return false
	}
	call, before := c.open[i], c.open[i-1]
	return call.id == "" && call.name == before.name && call.index != nil && before.index != nil && *call.index == *before.index && before.complete()
}
