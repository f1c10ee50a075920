package chat

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
)

// Message is one turn of a conversation. The message of an answer can be appended
// unchanged to the messages of the next request.
type Message struct {
	Role       string     `json:"role" enum:"system,developer,user,assistant,tool" doc:"author of the message"`
	Content    Content    `json:"content,omitzero" doc:"a text, or a list of parts: {type: text, text}, {type: image_url, image_url: {url}}, {type: image, data, media_type}"`
	Name       string     `json:"name,omitempty" doc:"name of the speaker"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty" doc:"the calls an assistant asked for"`
	ToolCallID string     `json:"tool_call_id,omitempty" doc:"the call that a tool message answers"`
	// Extra are members that the protocol does not define, such as
	// reasoning_content. Servers of reasoning models require them in later requests.
	// In JSON they are members of the message.
	Extra map[string]any `json:"-"`
}

// plainMessage is a message without its extra members.
type plainMessage Message

// Text returns a message of plain text.
func Text(role, text string) Message { return Message{Role: role, Content: Content{{Text: text}}} }

// Bare returns the message without extra members, including those of its tool calls:
// they are meaningful only to the server that added them.
func (m Message) Bare() Message {
	m.Extra = nil
	calls := append([]ToolCall(nil), m.ToolCalls...)
	for i := range calls {
		calls[i].Extra = nil
	}
	m.ToolCalls = calls
	return m
}

// JSONSchema describes a message; further members are allowed.
func (Message) JSONSchema() *schema.Schema {
	s := schema.OfType(reflect.TypeFor[plainMessage]())
	s.AdditionalProperties = nil
	return s
}

// MarshalJSON writes the extra members with the others.
func (m Message) MarshalJSON() ([]byte, error) {
	if len(m.Extra) == 0 {
		return json.Marshal(plainMessage(m))
	}
	v, err := value.From(plainMessage(m))
	if err != nil {
		return nil, err
	}
	members := v.(map[string]any)
	for name, extra := range m.Extra {
		if _, known := members[name]; !known {
			members[name] = extra
		}
	}
	return value.Encode(members)
}

// UnmarshalJSON stores unknown members in Extra.
func (m *Message) UnmarshalJSON(data []byte) error {
	var plain plainMessage
	if err := json.Unmarshal(data, &plain); err != nil {
		return err
	}
	extra, err := Unknown(data, "role", "content", "name", "tool_calls", "tool_call_id")
	if err != nil {
		return err
	}
	*m = Message(plain)
	m.Extra = extra
	return nil
}

// Unknown returns the members of a JSON object except the known ones and nulls; nil if
// there are none.
func Unknown(object []byte, known ...string) (map[string]any, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(object, &members); err != nil {
		return nil, err
	}
	for _, name := range known {
		delete(members, name)
	}
	var unknown map[string]any
	for name, raw := range members {
		v, err := value.Decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if v == nil {
			continue
		}
		if unknown == nil {
			unknown = map[string]any{}
		}
		unknown[name] = v
	}
	return unknown, nil
}

// Content is the content of a message: text and images in order. In JSON it is a string
// if it is only text, otherwise a list of parts; null and the variants of parts that
// servers use are accepted.
type Content []Part

// Part is a piece of text or an image.
type Part struct {
	Text string
	// Image is the URL of a picture, usually a data: URL.
	Image string
}

// Text joins the text parts.
func (c Content) Text() string {
	if len(c) == 1 {
		return c[0].Text
	}
	var b strings.Builder
	for _, p := range c {
		b.WriteString(p.Text)
	}
	return b.String()
}

// HasImages reports whether there are images.
func (c Content) HasImages() bool {
	for _, p := range c {
		if p.Image != "" {
			return true
		}
	}
	return false
}

// Parts returns the content as a list of parts in the form of OpenAI's protocol.
func (c Content) Parts() []any {
	parts := make([]any, 0, len(c))
	for _, p := range c {
		if p.Image != "" {
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": p.Image}})
		} else {
			parts = append(parts, map[string]any{"type": "text", "text": p.Text})
		}
	}
	return parts
}

// JSONSchema describes the forms that UnmarshalJSON reads.
func (Content) JSONSchema() *schema.Schema {
	return &schema.Schema{Type: schema.Types{"string", "array", "object", "null"}}
}

// MarshalJSON writes a string if there is only text.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.HasImages() {
		return json.Marshal(c.Parts())
	}
	return json.Marshal(c.Text())
}

// UnmarshalJSON reads null, a string, a part, or a list of strings and parts.
func (c *Content) UnmarshalJSON(data []byte) error {
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	*c = nil
	list, ok := v.([]any)
	if !ok && v != nil {
		list = []any{v}
	}
	for i, e := range list {
		part, err := toPart(e)
		if err != nil {
			return fmt.Errorf("content[%d]: %w", i, err)
		}
		*c = append(*c, part)
	}
	return nil
}

func toPart(v any) (Part, error) {
	switch v := v.(type) {
	case string:
		return Part{Text: v}, nil
	case map[string]any:
		if text, ok := v["text"].(string); ok {
			return Part{Text: text}, nil
		}
		if image := imageURL(v); image != "" {
			return Part{Image: image}, nil
		}
		return Part{}, fmt.Errorf("a part of type %v has neither text nor an image", v["type"])
	}
	return Part{}, fmt.Errorf("a part must be a text or an object, not a %T", v)
}

// imageURL returns the image in {image_url: {url}}, {image_url}, {url} and
// {data, media_type}.
func imageURL(part map[string]any) string {
	switch image := part["image_url"].(type) {
	case string:
		return image
	case map[string]any:
		url, _ := image["url"].(string)
		return url
	}
	if url, ok := part["url"].(string); ok {
		return url
	}
	data, ok := part["data"].(string)
	if !ok {
		return ""
	}
	mediaType, ok := part["media_type"].(string)
	if !ok {
		mediaType = "image/png"
	}
	return "data:" + mediaType + ";base64," + data
}
