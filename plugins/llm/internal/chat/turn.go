package chat

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"strings"
)

// turnMember is the extra member of a message that only its provider reads: the parts of
// the turn in the provider's order.
const turnMember = "turn"

// Item is a part of a turn: a text, a tool call, or a part that only its provider
// understands, such as encrypted reasoning.
type Item struct {
	Text string
	Call *ToolCall
	// Own are members to send back unchanged: those of the whole part if it is neither a
	// text nor a call, otherwise additional ones, such as a signature.
	Own map[string]any
}

// KeepItems sets the answer's calls, and stores the order of its parts if the provider
// needs more than text and calls in the next request.
func (a *Answer) KeepItems(provider string, items []Item) {
	var stored []any
	texts, own := 0, false
	for _, item := range items {
		if item.isText() {
			texts++
		}
	}
	for _, item := range items {
		kept := map[string]any{}
		switch {
		case item.Call != nil:
			a.ToolCalls = append(a.ToolCalls, *item.Call)
			kept["call"] = true
		case item.isText() && texts == 1:
			kept["text"] = true // the text of the message
		case item.isText():
			kept["text"] = item.Text
		}
		if len(item.Own) > 0 {
			kept["own"] = item.Own
			own = true
		}
		stored = append(stored, kept)
	}
	if own {
		a.Extra = map[string]any{turnMember: map[string]any{"provider": provider, "items": stored}}
	}
}

func (i Item) isText() bool { return i.Call == nil && (i.Text != "" || i.Own == nil) }

// Items returns the parts of a turn as its provider sent them. A turn of another
// provider, or one that was changed since, consists of its text and its calls.
func (m Message) Items(provider string) []Item {
	turn, _ := m.Extra[turnMember].(map[string]any)
	if stored, ok := turn["items"].([]any); ok && turn["provider"] == provider {
		if items := m.ordered(stored); items != nil {
			return items
		}
	}
	var items []Item
	if text := m.Content.Text(); text != "" {
		items = append(items, Item{Text: text})
	}
	for i := range m.ToolCalls {
		items = append(items, Item{Call: &m.ToolCalls[i]})
	}
	return items
}

// ordered restores the stored parts; nil if they do not match the message.
func (m Message) ordered(stored []any) []Item {
	var items []Item
	var said strings.Builder
	calls := 0
	for _, v := range stored {
		kept, _ := v.(map[string]any)
		item := Item{}
		item.Own, _ = kept["own"].(map[string]any)
		if kept["call"] == true {
			if calls == len(m.ToolCalls) {
				return nil
			}
			item.Call = &m.ToolCalls[calls]
			calls++
		}
		switch text := kept["text"].(type) {
		case bool:
			item.Text = m.Content.Text()
		case string:
			item.Text = text
		}
		said.WriteString(item.Text)
		items = append(items, item)
	}
	if calls != len(m.ToolCalls) || said.String() != m.Content.Text() {
		return nil
	}
	return items
}

// Dialect returns the extra members that servers of OpenAI's protocol and its dialects
// add to a message.
func (m Message) Dialect() map[string]any {
	if m.Extra[turnMember] == nil {
		return m.Extra
	}
	extra := maps.Clone(m.Extra)
	delete(extra, turnMember)
	return extra
}

// maxCallID is the longest id of a tool call that all servers accept.
const maxCallID = 64

// CallID returns an id that servers with strict rules accept for a tool call: other
// servers use longer ids, and further characters. Equal ids stay equal.
func CallID(id string) string {
	valid := id != "" && len(id) <= maxCallID
	for _, r := range id {
		valid = valid && (r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if valid {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return "call_" + hex.EncodeToString(sum[:12])
}

// ObjectOf returns the arguments of a call. A model also writes invalid arguments; the
// call's result describes the problem, and servers expect an object.
func (c ToolCall) ObjectOf() map[string]any {
	object, err := c.Object()
	if err != nil {
		return map[string]any{}
	}
	return object
}
