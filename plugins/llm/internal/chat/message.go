package chat

import (
	"cmp"
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
	Content    Content    `json:"content,omitzero" doc:"a text, or a list of parts: {type: text, text}, {type: image_url, image_url: {url}}, {type: image, data, media_type}, {type: file, data, media_type, filename}"`
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

// Content is the content of a message: text, images and files in order. In JSON it is a
// string if it is only text, otherwise a list of parts; null and the variants of parts
// that servers use are accepted.
type Content []Part

// Part is a piece of text, an image or a file.
type Part struct {
	Text string
	// Image is the URL of a picture, usually a data: URL.
	Image string
	// File is the URL of a document, usually a data: URL, and Name its name.
	File, Name string
}

// SplitData splits a data: URL with Base64. ok is false for another URL.
func SplitData(url string) (mediaType, data string, ok bool) {
	head, data, ok := strings.Cut(url, ";base64,")
	mediaType, isData := strings.CutPrefix(head, "data:")
	return mediaType, data, ok && isData
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

// HasMedia reports whether there are images or files.
func (c Content) HasMedia() bool {
	for _, p := range c {
		if p.Image != "" || p.File != "" {
			return true
		}
	}
	return false
}

// Parts returns the content as a list of parts in the form of OpenAI's protocol.
func (c Content) Parts() []any {
	parts := make([]any, 0, len(c))
	for _, p := range c {
		switch {
		case p.Image != "":
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": p.Image}})
		case p.File != "":
			parts = append(parts, map[string]any{"type": "file", "file": map[string]any{"filename": cmp.Or(p.Name, "document"), "file_data": p.File}})
		default:
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
	if c.HasMedia() {
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
		url, name := mediaURL(v)
		switch {
		case url == "":
			return Part{}, fmt.Errorf("a part of type %v has neither text nor an image or a file", v["type"])
		case isFile(v["type"], url):
			return Part{File: url, Name: name}, nil
		}
		return Part{Image: url}, nil
	}
	return Part{}, fmt.Errorf("a part must be a text or an object, not a %T", v)
}

// isFile reports whether a part is a file by its type, or by the media type of its data.
func isFile(kind any, url string) bool {
	if kind == "file" || kind == "input_file" || kind == "document" {
		return true
	}
	mediaType, _, ok := SplitData(url)
	return ok && !strings.HasPrefix(mediaType, "image/")
}

// mediaURL returns the URL in {image_url: {url}}, {image_url}, {url}, {data, media_type}
// and {file: {file_data, filename}}.
func mediaURL(part map[string]any) (url, name string) {
	for _, member := range []string{"image_url", "file"} {
		switch v := part[member].(type) {
		case string:
			return v, ""
		case map[string]any:
			part = v
		}
	}
	name, _ = part["filename"].(string)
	for _, member := range []string{"url", "file_data", "file_url"} {
		if url, ok := part[member].(string); ok {
			return url, name
		}
	}
	data, ok := part["data"].(string)
	if !ok {
		return "", ""
	}
	mediaType, ok := part["media_type"].(string)
	switch {
	case ok:
	case part["type"] == "file":
		mediaType = "application/pdf"
	default:
		mediaType = "image/png"
	}
	return "data:" + mediaType + ";base64," + data, name
}
