package llm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// Names of the tools of an agent with memory.
const (
	memoryStore  = "memory_store"
	memorySearch = "memory_search"
)

// maxNotes is the number of notes that a search returns.
const maxNotes = 5

// placeOf returns the prefix of an agent's keys in the memory.
func placeOf(agent string) string { return "agents/" + cmp.Or(agent, "unnamed") + "/" }

// memoryTools returns the tools with which an agent keeps notes and finds them in later
// calls. They call ltm.store and ltm.search.
func memoryTools(agent string) []tool {
	notes := placeOf(agent) + "notes/"
	return []tool{
		{
			name: memoryStore, action: "ltm.store",
			wire: chat.Tool{
				Description: "Keeps a note for later conversations, or replaces the note with this name. Keep what will be useful then, and nothing secret.",
				Parameters:  object("name", "short name of the note, such as pump-7-seal", "text", "the note"),
			},
			params: func(arguments map[string]any) map[string]any {
				return map[string]any{"key": notes + fmt.Sprint(arguments["name"]), "value": map[string]any{"text": arguments["text"]}}
			},
			result: func(tea.Payload) ([]byte, error) { return []byte("The note is kept."), nil },
		},
		{
			name: memorySearch, action: "ltm.search",
			wire: chat.Tool{Description: "Finds your notes of earlier conversations by words.", Parameters: object("query", "words in the note")},
			params: func(arguments map[string]any) map[string]any {
				return map[string]any{"query": arguments["query"], "prefix": notes, "limit": maxNotes}
			},
			result: func(p tea.Payload) ([]byte, error) { return foundNotes(p, notes) },
		},
	}
}

// foundNotes returns the notes in a result of ltm.search as text.
func foundNotes(p tea.Payload, prefix string) ([]byte, error) {
	var found struct {
		Results []struct {
			Key   string
			Value struct{ Text string }
		}
	}
	if err := p.Decode(&found); err != nil {
		return nil, tea.Errorf(tea.InternalError, "result of ltm.search: %w", err)
	}
	if len(found.Results) == 0 {
		return []byte("No note has these words."), nil
	}
	var text strings.Builder
	for _, r := range found.Results {
		fmt.Fprintf(&text, "%s: %s\n", strings.TrimPrefix(r.Key, prefix), r.Value.Text)
	}
	return []byte(text.String()), nil
}

// session is a conversation that the memory keeps between calls of agent.run.
type session struct {
	call *tea.Request
	key  string
}

// load returns the messages of the conversation; none if it is new.
func (s *session) load(ctx context.Context) ([]chat.Message, error) {
	resp, err := s.call.Invoke(ctx, tea.Invocation{Action: "ltm.retrieve", Params: map[string]any{"key": s.key}, Key: "session-load"})
	if err != nil {
		return nil, err
	}
	var entry struct {
		Value json.RawMessage
		Found bool
	}
	var kept struct{ Messages []chat.Message }
	if err = resp.Result.Decode(&entry); err == nil && entry.Found {
		err = json.Unmarshal(entry.Value, &kept)
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the entry %s is not a session of an agent: %w", s.key, err)
	}
	for i, m := range kept.Messages {
		kept.Messages[i] = m.Bare() // another model can have written them
	}
	return kept.Messages, nil
}

// store replaces the messages of the conversation.
func (s *session) store(ctx context.Context, messages []chat.Message) error {
	params := map[string]any{"key": s.key, "value": map[string]any{"messages": messages}}
	_, err := s.call.Invoke(ctx, tea.Invocation{Action: "ltm.store", Params: params, Key: "session-store"})
	return err
}
