package gemini

import (
	"encoding/json"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// response is an answer, or a piece of a streamed one.
type response struct {
	Candidates []struct {
		Content struct {
			Parts []json.RawMessage `json:"parts"`
		} `json:"content"`
		FinishReason  string `json:"finishReason"`
		FinishMessage string `json:"finishMessage"`
		Index         int    `json:"index"`
	} `json:"candidates"`
	Feedback struct {
		BlockReason string `json:"blockReason"`
	} `json:"promptFeedback"`
	Usage *struct {
		Prompt     int `json:"promptTokenCount"`
		Cached     int `json:"cachedContentTokenCount"`
		Candidates int `json:"candidatesTokenCount"`
		Tools      int `json:"toolUsePromptTokenCount"`
		Thoughts   int `json:"thoughtsTokenCount"`
		Total      int `json:"totalTokenCount"`
	} `json:"usageMetadata"`
	Model string          `json:"modelVersion"`
	Error json.RawMessage `json:"error"`
}

type part struct {
	Text         *string `json:"text"`
	Thought      bool    `json:"thought"`
	Signature    string  `json:"thoughtSignature"`
	FunctionCall *struct {
		ID   string          `json:"id"`
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
}

// assembly assembles an answer from its pieces.
type assembly struct {
	pieces chat.Pieces
	items  []chat.Item
	model  string
	finish string
	usage  *chat.Usage
}

// Complete implements [chat.Assembly].
func (a *assembly) Complete() bool { return a.finish != "" }

// Event implements [chat.Assembly]. No event is known to be the last one, because counts
// can follow the reason for the end.
func (a *assembly) Event(name string, data []byte) (grew, last bool, err error) {
	var r response
	if err := json.Unmarshal(data, &r); err != nil {
		return false, false, httpapi.NotAnAnswer(data, "an answer", err)
	}
	if name == "error" || httpapi.IsError(r.Error) {
		return false, false, httpapi.StreamError(data)
	}
	if r.Model != "" {
		a.model = r.Model
	}
	if u := r.Usage; u != nil {
		counts := chat.Usage{
			InputTokens: u.Prompt + u.Tools, CachedTokens: u.Cached, OutputTokens: u.Candidates + u.Thoughts, ReasoningTokens: u.Thoughts, TotalTokens: u.Total,
		}.Normalize()
		a.usage = &counts
	}
	if reason := r.Feedback.BlockReason; reason != "" && len(r.Candidates) == 0 {
		return false, false, tea.Errorf(httpapi.ContentFiltered, "the server's filter refused the request (%s)", reason)
	}
	for _, c := range r.Candidates {
		if c.Index != 0 {
			continue
		}
		for _, raw := range c.Content.Parts {
			if err := a.add(raw); err != nil {
				return grew, false, err
			}
			grew = true
		}
		if c.FinishReason != "" {
			a.finish = c.FinishReason
		}
	}
	return grew, false, nil
}

// add adds a part.
func (a *assembly) add(raw json.RawMessage) error {
	var p part
	if err := json.Unmarshal(raw, &p); err != nil {
		return httpapi.NotAnAnswer(raw, "a part of an answer", err)
	}
	own := map[string]any{}
	if p.Signature != "" {
		own["thoughtSignature"] = p.Signature
	}
	a.pieces.Size += len(p.Signature)
	switch {
	case p.FunctionCall != nil:
		call := &chat.ToolCall{ID: p.FunctionCall.ID, Name: p.FunctionCall.Name, Arguments: stream.Join(string(p.FunctionCall.Args))}
		if call.ID != "" {
			own["id"] = call.ID
		}
		a.pieces.Size += len(raw)
		a.items = append(a.items, chat.Item{Call: call, Own: own})
	case p.Text != nil && p.Thought:
		a.pieces.Add("", *p.Text)
		if p.Signature != "" {
			return a.addOther(raw)
		}
	case p.Text != nil:
		a.pieces.Add(*p.Text, "")
		a.addText(stream.Join(*p.Text), own)
	default:
		a.pieces.Size += len(raw)
		return a.addOther(raw)
	}
	return nil
}

// addText adds a piece of text. A signature belongs to one part, which the server does not
// accept as a part of another.
func (a *assembly) addText(text string, own map[string]any) {
	if len(own) == 0 {
		if n := len(a.items); n > 0 && a.items[n-1].Call == nil && a.items[n-1].Own == nil {
			a.items[n-1].Text += text
			return
		}
		own = nil
	}
	a.items = append(a.items, chat.Item{Text: text, Own: own})
}

// addOther adds a part that is sent back as it is.
func (a *assembly) addOther(raw json.RawMessage) error {
	v, err := value.Decode(raw)
	if err != nil {
		return httpapi.NotAnAnswer(raw, "a part of an answer", err)
	}
	a.items = append(a.items, chat.Item{Own: map[string]any{"part": v}})
	return nil
}

func (a *assembly) answer() *chat.Answer {
	answer := &chat.Answer{Model: a.model, Usage: a.usage}
	a.pieces.End(answer)
	answer.KeepItems(Name, a.items)
	answer.Finish(a.finish)
	return answer
}
