package responses

import (
	"encoding/json"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/plugins/llm/internal/stream"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
)

// response is an answer.
type response struct {
	Model      string            `json:"model"`
	Status     string            `json:"status"`
	Output     []json.RawMessage `json:"output"`
	Error      json.RawMessage   `json:"error"`
	Incomplete struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Usage *struct {
		Input  int `json:"input_tokens"`
		Output int `json:"output_tokens"`
		Total  int `json:"total_tokens"`
		In     struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
		Out struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	} `json:"usage"`
}

// event is an event of a stream, or an answer that is not streamed.
type event struct {
	Object   string          `json:"object"`
	Type     string          `json:"type"`
	Delta    string          `json:"delta"`
	Index    int             `json:"output_index"`
	Item     json.RawMessage `json:"item"`
	Response response        `json:"response"`
	Error    json.RawMessage `json:"error"`
}

// item is a part of an answer.
type item struct {
	Type      string `json:"type"`
	Phase     string `json:"phase"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	Encrypted string `json:"encrypted_content"`
	Content   []part `json:"content"`
	Summary   []part `json:"summary"`
}

type part struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// assembly assembles an answer from events.
type assembly struct {
	pieces  chat.Pieces
	items   []chat.Item
	said    map[int]bool // the items of which pieces have arrived
	thought bool         // reasoning has arrived
	last    *response
	refused bool
}

// Complete implements [chat.Assembly].
func (a *assembly) Complete() bool { return a.last != nil }

// Event implements [chat.Assembly].
func (a *assembly) Event(name string, data []byte) (grew, last bool, err error) {
	var e event
	if err := json.Unmarshal(data, &e); err != nil {
		return false, false, httpapi.NotAnAnswer(data, "an answer", err)
	}
	switch e.Type {
	case "error":
		return false, false, httpapi.StreamError(data)
	case "response.output_text.delta", "response.refusal.delta":
		a.say(e.Index, e.Delta, "")
		return true, false, nil
	case "response.reasoning_summary_part.added":
		if a.thought {
			a.say(e.Index, "", "\n\n")
		}
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.say(e.Index, "", e.Delta)
		return true, false, nil
	case "response.function_call_arguments.delta":
		a.pieces.Size += len(e.Delta)
		return true, false, nil
	case "response.output_item.done":
		return true, false, a.add(e.Index, e.Item)
	case "response.completed", "response.incomplete", "response.failed":
		return true, true, a.end(&e.Response)
	case "":
		if name == "error" || e.Object != "response" && httpapi.IsError(e.Error) {
			return false, false, httpapi.StreamError(data)
		}
		if e.Object == "response" {
			var r response
			if err := json.Unmarshal(data, &r); err != nil {
				return false, false, httpapi.NotAnAnswer(data, "an answer", err)
			}
			return true, true, a.end(&r)
		}
	}
	return false, false, nil // an event without a part of the answer
}

// say appends a piece of an item.
func (a *assembly) say(index int, text, reasoning string) {
	a.said[index] = true
	a.thought = a.thought || reasoning != ""
	a.pieces.Add(text, reasoning)
}

// add adds a complete item, and its texts unless they have arrived in pieces.
func (a *assembly) add(index int, raw json.RawMessage) error {
	var i item
	v, err := value.Decode(raw)
	own, ok := v.(map[string]any)
	if err != nil || !ok {
		return tea.Errorf(tea.ConnectionError, "the server sent an item that is not an object")
	}
	if err := json.Unmarshal(raw, &i); err != nil {
		return httpapi.NotAnAnswer(raw, "an item of an answer", err)
	}
	a.pieces.Size += len(raw)
	switch i.Type {
	case "message":
		a.items = append(a.items, a.message(index, i))
	case "function_call":
		a.items = append(a.items, chat.Item{Call: &chat.ToolCall{ID: i.CallID, Name: i.Name, Arguments: stream.Join(i.Arguments)}})
	case "reasoning":
		if !a.said[index] {
			texts := make([]string, len(i.Summary))
			for n, s := range i.Summary {
				texts[n] = s.Text
			}
			a.say(index, "", strings.Join(texts, "\n\n"))
		}
		if i.Encrypted != "" { // the server cannot read it otherwise, since it stores nothing
			a.items = append(a.items, chat.Item{Own: own})
		}
	default:
		a.items = append(a.items, chat.Item{Own: own})
	}
	return nil
}

// message converts an item with text.
func (a *assembly) message(index int, i item) chat.Item {
	out := chat.Item{}
	for _, p := range i.Content {
		if p.Type == "refusal" {
			a.refused = true
		}
		if !a.said[index] {
			a.pieces.Add(p.Text+p.Refusal, "")
		}
		out.Text += stream.Join(p.Text + p.Refusal)
	}
	if i.Phase != "" {
		out.Own = map[string]any{"phase": i.Phase}
	}
	return out
}

// end consumes the complete answer. Its items count if none has arrived before.
func (a *assembly) end(r *response) error {
	if r.Status == "failed" || r.Status == "cancelled" {
		return httpapi.StreamError(r.Error)
	}
	if len(a.items) == 0 {
		for i, raw := range r.Output {
			if err := a.add(i, raw); err != nil {
				return err
			}
		}
	}
	a.last = r
	return nil
}

func (a *assembly) answer() *chat.Answer {
	answer := &chat.Answer{Model: a.last.Model}
	a.pieces.End(answer)
	answer.KeepItems(Name, a.items)
	if u := a.last.Usage; u != nil {
		counts := chat.Usage{
			InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Total,
			CachedTokens: u.In.Cached, CacheWriteTokens: u.In.Written, ReasoningTokens: u.Out.Reasoning,
		}.Normalize()
		answer.Usage = &counts
	}
	finish := a.last.Incomplete.Reason
	if a.refused {
		finish = chat.FinishRefusal
	}
	answer.Finish(finish)
	return answer
}
