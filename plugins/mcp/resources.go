package mcp

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// ReadParams are the parameters of mcp.read_resource.
type ReadParams struct {
	Server string `json:"server" doc:"name of the server in settings.mcp.servers"`
	URI    string `json:"uri,omitempty" doc:"the resource; without it, the resources of the server are listed"`
}

// ReadResult is a resource, or the list of resources.
type ReadResult struct {
	Success   bool           `json:"success" doc:"always true"`
	Text      string         `json:"text" doc:"all contents that are text, one after the other"`
	Contents  []Item         `json:"contents,omitempty" doc:"the contents of the resource"`
	Resources []ResourceInfo `json:"resources,omitempty" doc:"the resources of the server, if none was named"`
	Truncated string         `json:"truncated,omitempty" doc:"what was cut off or left out"`
}

// ResourceInfo is a resource that a server lists.
type ResourceInfo struct {
	URI         string `json:"uri" doc:"for the parameter uri, or a template for it (RFC 6570)"`
	Name        string `json:"name"`
	Description string `json:"description"`
	MIMEType    string `json:"mime_type"`
	Template    bool   `json:"template" doc:"whether uri is a template"`
}

// ReadResource is the action mcp.read_resource.
func (c *Client) ReadResource(ctx context.Context, req *tea.Request, p ReadParams) (*ReadResult, error) {
	return again(func() (*ReadResult, error) { return c.readResource(ctx, req, p) })
}

func (c *Client) readResource(ctx context.Context, req *tea.Request, p ReadParams) (*ReadResult, error) {
	s, se, release, err := c.begin(ctx, p.Server)
	if err != nil {
		return nil, err
	}
	defer release()
	r := &ReadResult{Success: true}
	if p.URI == "" {
		return r, s.during(ctx, se, req, "list its resources", func(ctx context.Context, _ string) error { return r.list(ctx, se) })
	}
	b := s.budget()
	err = s.during(ctx, se, req, "read the resource "+quoted(p.URI), func(ctx context.Context, token string) error {
		res, err := se.ClientSession.ReadResource(ctx, &mcp.ReadResourceParams{URI: p.URI, Meta: mcp.Meta{"progressToken": token}})
		if err != nil {
			return s.resourceError(p.URI, err)
		}
		for _, content := range res.Contents {
			if content == nil {
				continue
			}
			item := b.resource(content)
			if r.Text += item.Text; item.Text != "" {
				item.Text = "" // the text of the result has it
			}
			r.Contents = append(r.Contents, item)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Truncated = b.truncated()
	return r, nil
}

// begin returns a session of a server for one request. The caller releases it.
func (c *Client) begin(ctx context.Context, name string) (*server, *session, func(), error) {
	s, err := c.server(name)
	if err != nil {
		return nil, nil, nil, err
	}
	release, err := s.slot(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	se, err := s.use(ctx)
	if err != nil {
		release()
		return nil, nil, nil, err
	}
	return s, se, release, nil
}

// list adds the server's resources and templates, up to maxTools.
func (r *ReadResult) list(ctx context.Context, se *session) error {
	if caps := se.InitializeResult().Capabilities; caps == nil || caps.Resources == nil {
		return nil
	}
	full := func() bool {
		if len(r.Resources) < maxTools {
			return false
		}
		r.Truncated = "the server has more resources"
		return true
	}
	for resource, err := range se.Resources(ctx, nil) {
		if err != nil {
			return err
		}
		if full() {
			return nil
		}
		r.Resources = append(r.Resources, ResourceInfo{
			URI: resource.URI, Name: printable(resource.Name), Description: plaintext.Cut(printable(resource.Description), maxDescription), MIMEType: resource.MIMEType,
		})
	}
	for template, err := range se.ResourceTemplates(ctx, nil) {
		if err != nil {
			return err
		}
		if full() {
			return nil
		}
		r.Resources = append(r.Resources, ResourceInfo{
			URI: template.URITemplate, Name: printable(template.Name), Description: plaintext.Cut(printable(template.Description), maxDescription), MIMEType: template.MIMEType, Template: true,
		})
	}
	return nil
}

// PromptParams are the parameters of mcp.get_prompt.
type PromptParams struct {
	Server    string            `json:"server" doc:"name of the server in settings.mcp.servers"`
	Prompt    string            `json:"prompt,omitempty" doc:"name of the prompt; without it, the prompts of the server are listed"`
	Arguments map[string]string `json:"arguments,omitempty" doc:"its arguments"`
}

// PromptResult is a prompt, or the list of prompts.
type PromptResult struct {
	Success     bool         `json:"success" doc:"always true"`
	Description string       `json:"description"`
	Messages    []Message    `json:"messages,omitempty" doc:"for the parameter messages of llm.call"`
	Content     []Item       `json:"content,omitempty" doc:"images, audio, resources and links in the messages"`
	Prompts     []PromptInfo `json:"prompts,omitempty" doc:"the prompts of the server, if none was named"`
	Truncated   string       `json:"truncated,omitempty" doc:"what was cut off or left out"`
}

// Message is a message of a prompt.
type Message struct {
	Role    string `json:"role" doc:"user or assistant"`
	Content string `json:"content" doc:"the text"`
}

// PromptInfo is a prompt that a server lists.
type PromptInfo struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Arguments   []string `json:"arguments" doc:"names of the arguments"`
	Required    []string `json:"required" doc:"names of the arguments that are needed"`
}

// GetPrompt is the action mcp.get_prompt.
func (c *Client) GetPrompt(ctx context.Context, req *tea.Request, p PromptParams) (*PromptResult, error) {
	return again(func() (*PromptResult, error) { return c.getPrompt(ctx, req, p) })
}

func (c *Client) getPrompt(ctx context.Context, req *tea.Request, p PromptParams) (*PromptResult, error) {
	s, se, release, err := c.begin(ctx, p.Server)
	if err != nil {
		return nil, err
	}
	defer release()
	r := &PromptResult{Success: true}
	if p.Prompt == "" {
		return r, s.during(ctx, se, req, "list its prompts", func(ctx context.Context, _ string) error { return r.list(ctx, se) })
	}
	b := s.budget()
	err = s.during(ctx, se, req, "return the prompt "+quoted(p.Prompt), func(ctx context.Context, token string) error {
		res, err := se.ClientSession.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Prompt, Arguments: p.Arguments, Meta: mcp.Meta{"progressToken": token}})
		if err != nil {
			return err
		}
		r.Description = plaintext.Cut(printable(res.Description), maxDescription)
		for _, m := range res.Messages {
			r.add(m, b)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	r.Truncated = b.truncated()
	return r, nil
}

// add adds a message. Text, including that of a resource, becomes its content.
func (r *PromptResult) add(m *mcp.PromptMessage, b *budget) {
	if m == nil {
		return
	}
	if text, ok := m.Content.(*mcp.TextContent); ok && !strings.HasPrefix(text.Text, foreignMark) {
		r.Messages = append(r.Messages, Message{string(m.Role), b.text(text.Text, "a message")})
		return
	}
	item := b.item(m.Content)
	if item.Text != "" {
		r.Messages = append(r.Messages, Message{string(m.Role), item.Text})
		return
	}
	r.Content = append(r.Content, item)
}

// list adds the server's prompts, up to maxTools.
func (r *PromptResult) list(ctx context.Context, se *session) error {
	if caps := se.InitializeResult().Capabilities; caps == nil || caps.Prompts == nil {
		return nil
	}
	for prompt, err := range se.Prompts(ctx, nil) {
		if err != nil {
			return err
		}
		if len(r.Prompts) == maxTools {
			r.Truncated = "the server has more prompts"
			return nil
		}
		info := PromptInfo{Name: prompt.Name, Description: plaintext.Cut(printable(prompt.Description), maxDescription), Arguments: []string{}, Required: []string{}}
		for _, a := range prompt.Arguments {
			info.Arguments = append(info.Arguments, a.Name)
			if a.Required {
				info.Required = append(info.Required, a.Name)
			}
		}
		r.Prompts = append(r.Prompts, info)
	}
	return nil
}
