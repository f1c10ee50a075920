package llm

import (
	"context"
	"fmt"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
)

// notes keep a conversation with tools in the run's checkpoint: each answer
// of the model before its tools are run, and each tool's result as soon as it
// is there. A repeated call with the same idempotency key reads them instead
// of asking and running again. One note per fact keeps the checkpoint's growth
// in step with the conversation's. It is safe for concurrent use.
type notes struct {
	host   tea.Host
	prefix string
}

func (n notes) answerKey(round int) string { return fmt.Sprintf("%s/%d", n.prefix, round) }

func (n notes) resultKey(round, index int) string {
	return fmt.Sprintf("%s/%d/%d", n.prefix, round, index)
}

func (n notes) answer(ctx context.Context, round int) (*chat.Answer, bool, error) {
	answer := new(chat.Answer)
	found, err := n.read(ctx, n.answerKey(round), answer)
	return answer, found, err
}

func (n notes) setAnswer(ctx context.Context, round int, answer *chat.Answer) error {
	return n.host.SetNote(ctx, n.answerKey(round), answer)
}

func (n notes) result(ctx context.Context, round, index int) (r ToolResult, found bool, err error) {
	found, err = n.read(ctx, n.resultKey(round, index), &r)
	return r, found, err
}

func (n notes) setResult(ctx context.Context, round, index int, r ToolResult) error {
	return n.host.SetNote(ctx, n.resultKey(round, index), r)
}

func (n notes) read(ctx context.Context, key string, into any) (found bool, err error) {
	note, found, err := n.host.Note(ctx, key)
	if err != nil || !found {
		return false, err
	}
	if err := note.Decode(into); err != nil {
		return false, tea.Errorf(tea.InternalError, "read the note %s: %w", key, err)
	}
	return true, nil
}
