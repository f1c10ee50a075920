package replay

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// fake answers with its text, in pieces of one letter where it is streamed.
type fake struct {
	text string
	err  error
}

func (f fake) Chat(_ context.Context, _ *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	if f.err != nil {
		return nil, f.err
	}
	if emit != nil {
		for _, letter := range f.text {
			emit(chat.Delta{Text: string(letter)})
		}
	}
	return &chat.Answer{Text: f.text, FinishReason: "stop"}, nil
}

func (f fake) Embed(context.Context, *chat.EmbedRequest) (*chat.Embeddings, error) {
	return &chat.Embeddings{Vectors: [][]float64{{1, 2.5}}}, f.err
}

func ask(question string) *chat.Request {
	return &chat.Request{Model: "m", Messages: []chat.Message{chat.Text("user", question)}}
}

func play(t *testing.T, p *Provider, req *chat.Request) (text string, pieces []string, err error) {
	t.Helper()
	answer, err := p.Chat(t.Context(), req, func(d chat.Delta) { pieces = append(pieces, d.Text) })
	if err != nil {
		return "", nil, err
	}
	return answer.Text, pieces, nil
}

func TestRecordAndPlayBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "new", "answers.jsonl")
	recording := New(Open(path), fake{text: "yes"})
	if _, _, err := play(t, recording, ask("streamed")); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Chat(t.Context(), ask("whole"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	player := New(Open(path), nil)
	for question, want := range map[string][]string{"streamed": {"y", "e", "s"}, "whole": {"yes"}} {
		text, pieces, err := play(t, player, ask(question))
		if err != nil || text != "yes" {
			t.Errorf("%s: got %q, %v", question, text, err)
		}
		if diff := cmp.Diff(want, pieces); diff != "" {
			t.Errorf("%s: %s", question, diff)
		}
	}
	got, err := player.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]float64{{1, 2.5}}, got.Vectors); diff != "" {
		t.Error(diff)
	}
}

func TestTheLastRecordingCounts(t *testing.T) {
	t.Parallel()
	file := Open(filepath.Join(t.TempDir(), "answers.jsonl"))
	for _, text := range []string{"old", "new"} {
		if _, err := New(file, fake{text: text}).Chat(t.Context(), ask("q"), nil); err != nil {
			t.Fatal(err)
		}
		if got, _, err := play(t, New(file, nil), ask("q")); err != nil || got != text {
			t.Errorf("got %q, %v", got, err)
		}
	}
}

// The caller fills in and renames tool calls; a recording must not change.
func TestAnswersBelongToTheCaller(t *testing.T) {
	t.Parallel()
	file := Open(filepath.Join(t.TempDir(), "answers.jsonl"))
	recorded := &Record{Answer: &chat.Answer{ToolCalls: []chat.ToolCall{{Name: "a"}}}}
	var err error
	if recorded.Hash, err = hashOf("chat", ask("q")); err != nil {
		t.Fatal(err)
	}
	if err := file.add(recorded); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		answer, err := New(file, nil).Chat(t.Context(), ask("q"), nil)
		if err != nil || answer.ToolCalls[0].Name != "a" {
			t.Fatalf("got %v, %v", answer, err)
		}
		answer.ToolCalls[0].Name = "changed"
	}
}

func TestMissingRecordingSaysHowToRecord(t *testing.T) {
	t.Parallel()
	_, _, err := play(t, New(Open(filepath.Join(t.TempDir(), "none.jsonl")), nil), ask("q"))
	var e *tea.Error
	if !errors.As(err, &e) || e.Type != tea.NotFound || !strings.Contains(e.Message, "record: true") {
		t.Errorf("got %v", err)
	}
}

func TestFailuresAreNotRecorded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if _, err := New(Open(path), fake{err: errors.New("down")}).Chat(t.Context(), ask("q"), nil); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

func TestTornLastLineIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if _, err := New(Open(path), fake{text: "a"}).Chat(t.Context(), ask("1"), nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, whole[:len(whole)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _, err := play(t, New(Open(path), nil), ask("1")); err != nil || text != "a" {
		t.Errorf("before: got %q, %v", text, err)
	}
	if _, err := New(Open(path), fake{text: "b"}).Chat(t.Context(), ask("2"), nil); err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{"1": "a", "2": "b"} {
		if text, _, err := play(t, New(Open(path), nil), ask(question)); err != nil || text != want {
			t.Errorf("after: got %q, %v", text, err)
		}
	}
}

func TestBrokenLineIsNamed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if err := os.WriteFile(path, []byte("\n{\"hash\":\"a\"}\noops\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, _, err := play(t, New(Open(path), nil), ask("q"))
	if err == nil || !strings.Contains(err.Error(), "answers.jsonl:3:") {
		t.Errorf("got %v", err)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	base := ask("q")
	base.Extra = map[string]any{"a": 1.0, "b": 2}
	same := ask("q")
	same.Extra = map[string]any{"b": 2.0, "a": 1}
	other := ask("q")
	hash := func(r *chat.Request) string {
		h, err := hashOf("chat", r)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	if hash(base) != hash(same) {
		t.Error("order of members and form of numbers change the hash")
	}
	if hash(base) == hash(other) {
		t.Error("extra does not change the hash")
	}
}
