package chat

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/sdk/schema"
)

// Message is one turn of a conversation. The message of an answer can be put
// back into the messages of the next request as it is.
type Message struct {
	Role       string     `json:"role" enum:"system,developer,user,assistant,tool" doc:"who speaks"`
	Content    Content    `json:"content,omitzero" doc:"a text, or a list of parts: {type: text, text}, {type: image_url, image_url: {url}}, {type: image, data, media_type}"`
	Reasoning  string     `json:"reasoning,omitempty" doc:"what the model thought before it answered; not sent back to it"`
	Name       string     `json:"name,omitempty" doc:"name of the speaker"`
	ToolCalls  []ToolCall `json:"tool_calls,omitempty" doc:"the calls an assistant asked for"`
	ToolCallID string     `json:"tool_call_id,omitempty" doc:"the call that a tool message answers"`
}

// Text makes a message of plain text.
func Text(role, text string) Message { return Message{Role: role, Content: Content{{Text: text}}} }

// Content is what a message says: text and images in order. In JSON it is a
// string where it is text only, a list of parts otherwise; null and the
// variants of parts that servers use are understood.
type Content []Part

// Part is a piece of text or an image.
type Part struct {
	Text string
	// Image is the URL of a picture, usually a data: URL.
	Image string
}

// Text puts the text parts together.
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

// HasImages tells whether there is more than text.
func (c Content) HasImages() bool {
	for _, p := range c {
		if p.Image != "" {
			return true
		}
	}
	return false
}

// Parts gives the content as the list of parts that OpenAI's protocol knows.
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

// MarshalJSON writes a string where there is text only.
func (c Content) MarshalJSON() ([]byte, error) {
	if c.HasImages() {
		return json.Marshal(c.Parts())
	}
	return json.Marshal(c.Text())
}

// UnmarshalJSON reads null, a text, a part, or a list of texts and parts.
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

// imageURL finds the picture in {image_url: {url}}, {image_url}, {url} and
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
