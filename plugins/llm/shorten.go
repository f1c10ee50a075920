package llm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

const (
	// keptResult is the length in bytes up to which the result of a tool is not removed.
	keptResult = 200
	// maxSummarized is what the model reads of one message that it summarises.
	maxSummarized = 4000
)

// summaryPrefix begins the message that replaces old rounds.
const summaryPrefix = "Summary of the conversation so far, which was removed to save space; it includes work on the task below:\n"

// summaryPrompt asks for a summary.
const summaryPrompt = "Summarise this conversation for an agent that continues it without seeing it. Keep the facts, numbers and names that were found, what was decided and done, what failed, and what is still to do. Write plain text of at most 300 words."

// shorten keeps the conversation below limits.context: it removes results of tools, the
// oldest first, and if that is not enough, it replaces the oldest rounds by a summary. It
// leaves the task and the last round. A round is removed whole, because servers refuse
// a call without its result. So that the server's cache of the prompt stays of use, it
// shortens to three quarters of the limit.
func (a *agent) shorten(ctx context.Context, round int, question *chat.Request) error {
	limit := a.limits.Context
	if limit == 0 || contextTokens(question) <= limit {
		return nil
	}
	target := limit * 3 / 4
	task, last := landmarks(question.Messages, a.params.Prompt)
	for i, m := range question.Messages[:last] {
		if contextTokens(question) <= target {
			return nil
		}
		if size := len(m.Content.Text()); m.Role == "tool" && size > keptResult {
			m.Content = chat.Content{{Text: fmt.Sprintf("[result of %d bytes removed to save space]", size)}}
			question.Messages[i] = m
		}
	}
	if contextTokens(question) <= limit {
		return nil
	}
	old := slices.Clone(question.Messages[:max(task, 0)])
	old = append(old, question.Messages[task+1:last]...)
	if len(old) < 2 {
		return nil // nothing that a summary would make shorter
	}
	r, err := a.callModel(ctx, fmt.Sprintf("summary-%d", round), map[string]any{"system": summaryPrompt, "prompt": transcript(old)})
	if err != nil {
		return err
	}
	kept := []chat.Message{chat.Text("user", summaryPrefix+r.Content)}
	if task >= 0 {
		kept = append(kept, question.Messages[task])
	}
	question.Messages = append(kept, question.Messages[last:]...)
	return nil
}

// contextTokens estimates the tokens of a request's messages.
func contextTokens(question *chat.Request) int { return chat.EstimateUsage(question, 0).InputTokens }

// landmarks returns the place of the message with the task, -1 if there is none, and of
// the first message of the last round.
func landmarks(messages []chat.Message, prompt string) (task, last int) {
	task, last = -1, len(messages)
	for i, m := range messages {
		switch {
		case m.Role == "user" && (prompt == "" || m.Content.Text() == prompt):
			task = i
		case m.Role == "assistant" && len(m.ToolCalls) > 0:
			last = i
		}
	}
	return task, max(last, task+1)
}

// transcript writes messages as text.
func transcript(messages []chat.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s: %s\n", m.Role, plaintext.Cut(m.Content.Text(), maxSummarized))
		for _, call := range m.ToolCalls {
			fmt.Fprintf(&b, "  calls %s %s\n", call.Name, plaintext.Cut(call.Arguments, maxSummarized))
		}
	}
	return b.String()
}
