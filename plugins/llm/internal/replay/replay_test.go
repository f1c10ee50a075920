package replay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
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

func noSecrets(_ context.Context, v any) (any, error) { return v, nil }

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
	recording := New(Open(path), noSecrets, fake{text: "yes"})
	if _, _, err := play(t, recording, ask("streamed")); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Chat(t.Context(), ask("whole"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Embed(t.Context(), &chat.EmbedRequest{Model: "e", Input: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	player := New(Open(path), noSecrets, nil)
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
		if _, err := New(file, noSecrets, fake{text: text}).Chat(t.Context(), ask("q"), nil); err != nil {
			t.Fatal(err)
		}
		if got, _, err := play(t, New(file, noSecrets, nil), ask("q")); err != nil || got != text {
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
		answer, err := New(file, noSecrets, nil).Chat(t.Context(), ask("q"), nil)
		if err != nil || answer.ToolCalls[0].Name != "a" {
			t.Fatalf("got %v, %v", answer, err)
		}
		answer.ToolCalls[0].Name = "changed"
	}
}

func TestMissingRecordingSaysHowToRecord(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none.jsonl")
	_, _, err := play(t, New(Open(path), noSecrets, nil), ask("q"))
	if e := tea.AsError(err); e == nil || e.Type != tea.NotFound || !strings.Contains(e.Message, path+" not found") || !strings.Contains(e.Message, "record: true") {
		t.Errorf("no file: got %v", err)
	}
	if _, err := New(Open(path), noSecrets, fake{text: "a"}).Chat(t.Context(), ask("another"), nil); err != nil {
		t.Fatal(err)
	}
	_, _, err = play(t, New(Open(path), noSecrets, nil), ask("q"))
	if e := tea.AsError(err); e == nil || e.Type != tea.NotFound || !strings.Contains(e.Message, "no recording of this request") || !strings.Contains(e.Message, "record: true") {
		t.Errorf("no recording: got %v", err)
	}
}

// hideSecret masks what the tests below use as a secret.
func hideSecret(_ context.Context, v any) (any, error) {
	raw, err := value.Encode(v)
	if err != nil {
		return nil, err
	}
	return value.Decode([]byte(strings.ReplaceAll(string(raw), "s3cret", "***")))
}

// A recording is shared with others: it contains no secrets, also none that is
// spread over the pieces of a stream, and is still found.
func TestRecordingContainsNoSecrets(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	question := ask("the key is s3cret")
	question.Messages = append(question.Messages, chat.Message{Role: "assistant", ToolCalls: []chat.ToolCall{{ID: "c", Name: "f", Arguments: `{"key":"s3cret"}`}}})
	if _, _, err := play(t, New(Open(path), hideSecret, fake{text: "it is s3cret"}), question); err != nil {
		t.Fatal(err)
	}
	rejected := &tea.Error{Type: tea.ValidationError, Message: "HTTP 400: bad s3cret", Details: map[string]any{"status": int64(400), "code": "s3cret"}}
	if _, err := New(Open(path), hideSecret, fake{err: rejected}).Chat(t.Context(), ask("s3cret?"), nil); err == nil {
		t.Error("no error")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "s3cret") || strings.Contains(string(raw), `"chunks"`) {
		t.Errorf("recorded %s", raw)
	}
	text, pieces, err := play(t, New(Open(path), hideSecret, nil), question)
	if err != nil || text != "it is ***" {
		t.Errorf("got %q, %v", text, err)
	}
	if diff := cmp.Diff([]string{"it is ***"}, pieces); diff != "" {
		t.Error(diff)
	}
	if _, _, err := play(t, New(Open(path), hideSecret, nil), ask("s3cret?")); err == nil || err.Error() != "validation_error: HTTP 400: bad ***" {
		t.Errorf("got %v", err)
	}
	failing := func(context.Context, any) (any, error) { return nil, errors.New("no mask") }
	if _, err := New(Open(path), failing, fake{text: "s3cret"}).Chat(t.Context(), ask("q"), nil); err == nil {
		t.Error("recorded without a mask")
	}
}

func TestOnlyTheOwnerReadsARecording(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := filepath.Join(dir, "old.jsonl")
	if err := os.WriteFile(old, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{old, filepath.Join(dir, "new.jsonl")} {
		if _, err := New(Open(path), noSecrets, fake{text: "a"}).Chat(t.Context(), ask("q"), nil); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s: mode %o", path, mode)
		}
	}
}

func TestFailuresAreNotRecorded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if _, err := New(Open(path), noSecrets, fake{err: errors.New("down")}).Chat(t.Context(), ask("q"), nil); err == nil {
		t.Error("no error")
	}
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
}

// A workflow and its judge, or two processes, record to one file.
func TestSeveralRecordersOfAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	const each = 50
	var recorders sync.WaitGroup
	for r := range 4 {
		recorder := New(Open(path), noSecrets, fake{text: strings.Repeat("a", 1000*r)})
		recorders.Go(func() {
			for n := range each {
				if _, err := recorder.Chat(t.Context(), ask(fmt.Sprint(r, n)), nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	recorders.Wait()
	records, err := load(path)
	if err != nil || len(records) != 4*each {
		t.Errorf("%d recordings, want %d, %v", len(records), 4*each, err)
	}
}

func TestTornLastLineIsReplaced(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "answers.jsonl")
	if _, err := New(Open(path), noSecrets, fake{text: "a"}).Chat(t.Context(), ask("1"), nil); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(whole, whole[:len(whole)/2]...), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _, err := play(t, New(Open(path), noSecrets, nil), ask("1")); err != nil || text != "a" {
		t.Errorf("before: got %q, %v", text, err)
	}
	if _, err := New(Open(path), noSecrets, fake{text: "b"}).Chat(t.Context(), ask("2"), nil); err != nil {
		t.Fatal(err)
	}
	for question, want := range map[string]string{"1": "a", "2": "b"} {
		if text, _, err := play(t, New(Open(path), noSecrets, nil), ask(question)); err != nil || text != want {
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
	_, _, err := play(t, New(Open(path), noSecrets, nil), ask("q"))
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
