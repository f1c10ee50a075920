package mcp

import (
	"encoding/base64"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// ToolFailed is the error type of a tool that reports a failure.
const ToolFailed tea.ErrorType = "mcp_tool_error"

// ToolResult is the result of a tool.
type ToolResult struct {
	Success   bool   `json:"success" doc:"always true"`
	Text      string `json:"text" doc:"all texts, one after the other"`
	Data      any    `json:"data,omitempty" doc:"the structured content, if the tool has one"`
	Content   []Item `json:"content,omitempty" doc:"images, audio, resources and links"`
	Truncated string `json:"truncated,omitempty" doc:"what was cut off or left out because of max_result_bytes"`
}

// Item is a part of a result that is not plain text.
type Item struct {
	Type        string `json:"type" doc:"image, audio, resource, resource_link, or another type of the server"`
	URI         string `json:"uri,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mime_type,omitempty"`
	Text        string `json:"text,omitempty" doc:"of a resource that is text"`
	Data        string `json:"data,omitempty" doc:"in Base64, of binary content"`
	Bytes       int    `json:"bytes,omitempty" doc:"size of the binary content, also if it is left out"`
	Value       any    `json:"value,omitempty" doc:"content of another type, as the server sent it"`
}

// budget bounds the size of one result.
type budget struct {
	left int
	cut  []string
}

// text returns the text, truncated to the budget.
func (b *budget) text(text, what string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	if len(text) <= b.left {
		b.left -= len(text)
		return text
	}
	end := value.WholeRunes(text[:b.left])
	b.cut = append(b.cut, what+" was cut off")
	short := plaintext.Cut(text, end)
	b.left = 0
	return short
}

// binary returns the bytes in Base64, or "" if they exceed the budget.
func (b *budget) binary(data []byte, what string) string {
	n := base64.StdEncoding.EncodedLen(len(data))
	if n > b.left {
		b.cut = append(b.cut, what+" was left out")
		return ""
	}
	b.left -= n
	return base64.StdEncoding.EncodeToString(data)
}

// truncated describes the truncated parts.
func (b *budget) truncated() string {
	const shown = 5
	if len(b.cut) > shown {
		b.cut = append(b.cut[:shown:shown], "and more")
	}
	return strings.Join(b.cut, "; ")
}

func (s *server) budget() *budget {
	limit := s.config.MaxResultBytes
	if limit == 0 {
		limit = 4 << 20
	}
	return &budget{left: limit}
}

// toolResult converts the result of a tool.
func (s *server) toolResult(t *tool, res *mcp.CallToolResult) (*ToolResult, error) {
	b := s.budget()
	r := &ToolResult{Success: true}
	if res.StructuredContent != nil {
		content, err := structured(res.StructuredContent)
		if err != nil {
			return nil, s.errorf(tea.ConnectionError, "the structured content of %s: %w", quoted(t.def.Name), err)
		}
		text, err := value.Encode(content)
		if err != nil {
			return nil, s.errorf(tea.InternalError, "the structured content of %s: %w", quoted(t.def.Name), err)
		}
		if len(text) > b.left {
			b.cut = append(b.cut, "the structured content was left out")
		} else {
			b.left -= len(text)
			r.Data = content
		}
	}
	var texts []string
	for _, c := range res.Content {
		if text, ok := c.(*mcp.TextContent); ok && !strings.HasPrefix(text.Text, foreignMark) {
			texts = append(texts, text.Text)
			continue
		}
		r.Content = append(r.Content, b.item(c))
	}
	r.Text = b.text(strings.Join(texts, "\n"), "the text")
	r.Truncated = b.truncated()
	if res.IsError {
		text := r.Text
		if text == "" {
			text = "it reports a failure without a reason"
		}
		e := s.errorf(ToolFailed, "tool %s: %s", quoted(t.def.Name), plaintext.Cut(text, 8000))
		e.Details = map[string]any{"tool": t.def.Name}
		if r.Data != nil {
			e.Details["data"] = r.Data
		}
		return nil, e
	}
	return r, nil
}

// item converts content that is not plain text.
func (b *budget) item(c mcp.Content) Item {
	switch c := c.(type) {
	case *mcp.TextContent:
		return b.foreign(strings.TrimPrefix(c.Text, foreignMark))
	case *mcp.ImageContent:
		return Item{Type: "image", MIMEType: c.MIMEType, Data: b.binary(c.Data, "an image"), Bytes: len(c.Data)}
	case *mcp.AudioContent:
		return Item{Type: "audio", MIMEType: c.MIMEType, Data: b.binary(c.Data, "an audio recording"), Bytes: len(c.Data)}
	case *mcp.ResourceLink:
		return Item{Type: "resource_link", URI: c.URI, Name: c.Name, Description: plaintext.Cut(c.Description, maxDescription), MIMEType: c.MIMEType}
	case *mcp.EmbeddedResource:
		if c.Resource != nil {
			return b.resource(c.Resource)
		}
	}
	return Item{Type: "resource"}
}

// foreign converts content of an unknown type from its JSON text.
func (b *budget) foreign(raw string) Item {
	item := Item{Type: "unknown"}
	v, err := value.Decode([]byte(raw))
	if object, ok := v.(map[string]any); ok {
		if kind, ok := object["type"].(string); ok && kind != "" {
			item.Type = plaintext.Cut(printable(kind), 100)
		}
	}
	if err != nil || len(raw) > b.left {
		b.cut = append(b.cut, "content of the type "+quoted(item.Type)+" was left out")
		return item
	}
	b.left -= len(raw)
	item.Value = v
	return item
}

// resource converts the contents of a resource.
func (b *budget) resource(r *mcp.ResourceContents) Item {
	item := Item{Type: "resource", URI: r.URI, MIMEType: r.MIMEType}
	if r.Blob != nil {
		item.Data, item.Bytes = b.binary(r.Blob, "the resource "+quoted(r.URI)), len(r.Blob)
		return item
	}
	item.Text = b.text(r.Text, "the resource "+quoted(r.URI))
	return item
}
