// Package command is a provider that runs a program of the settings for each answer: the
// prompt is its standard input, the answer its standard output. Start with [New].
package command

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// Name is the provider's name.
const Name = "command"

// Failed is the type of the error of a program whose exit code is not 0.
const Failed tea.ErrorType = "command_failed"

// Program is a program that workflows can ask. No shell reads its arguments, and no
// workflow adds to them.
type Program struct {
	Argv []string          `json:"argv" minItems:"1" doc:"the program, looked up in PATH, and its arguments"`
	Env  map[string]string `json:"env,omitempty" secret:"true" doc:"its environment besides PATH and LANG"`
	Dir  string            `json:"dir,omitempty" format:"path" doc:"its working directory; default: the root directory"`
}

// Provider runs a program. A call ends with the context's; the program and what it has
// started in its process group are killed then.
type Provider struct {
	name      string
	program   Program
	maxAnswer int
}

var _ chat.Provider = (*Provider)(nil)

// New returns a provider; name is the program's name in messages, maxAnswer the maximum
// size of an answer in bytes.
func New(name string, p Program, maxAnswer int) *Provider { return &Provider{name, p, maxAnswer} }

// Embed implements [chat.Provider].
func (p *Provider) Embed(context.Context, *chat.EmbedRequest) (*chat.Embeddings, error) {
	return nil, tea.Errorf(tea.ValidationError, "provider command has no embeddings; set embedding_model to the model of another provider")
}

// waitDelay bounds the wait for the outputs of a program that has ended.
const waitDelay = 2 * time.Second

// Chat implements [chat.Provider].
func (p *Provider) Chat(ctx context.Context, req *chat.Request, emit func(chat.Delta)) (*chat.Answer, error) {
	prompt, err := promptOf(req)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := exec.CommandContext(running, p.program.Argv[0], p.program.Argv[1:]...)
	childproc.Group(cmd)
	childproc.EndWithParent(cmd)
	cmd.Cancel = func() error { return childproc.KillGroup(cmd.Process) }
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8"}
	for _, name := range slices.Sorted(maps.Keys(p.program.Env)) {
		cmd.Env = append(cmd.Env, name+"="+p.program.Env[name])
	}
	cmd.Dir = cmp.Or(p.program.Dir, string(os.PathSeparator))
	chunks, stderr := make(chan string), &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = strings.NewReader(prompt), &sender{running, chunks}, stderr, waitDelay
	ended := make(chan error, 1)
	go func() {
		err := cmd.Run()
		if errors.Is(err, exec.ErrWaitDelay) {
			_ = cmd.Cancel() // something that it has started holds its outputs
		}
		ended <- err
		close(chunks)
	}()
	answer := &assembly{pieces: chat.Pieces{Emit: emit, Max: p.maxAnswer}}
	var failure *tea.Error
	for chunk := range chunks {
		if failure != nil {
			continue
		}
		if failure = answer.add(chunk); failure != nil {
			cancel()
		}
	}
	err = <-ended
	if failure == nil {
		failure = p.outcome(ctx, cmd, err, stderr.text)
	}
	if failure != nil {
		if n := answer.pieces.Emitted; n > 0 { // another provider would emit them again
			failure.Details = map[string]any{"tokens": int64(n)}
		}
		return nil, failure
	}
	out := answer.finish()
	out.NotSent = notSent(req)
	return out, nil
}

// promptOf returns the texts of a request, separated by empty lines. In a conversation each
// begins with its role.
func promptOf(req *chat.Request) (string, error) {
	if len(req.Tools) > 0 {
		return "", tea.Errorf(tea.ValidationError, "provider command has no tools; use a program that has its own, or another provider")
	}
	isConversation := slices.ContainsFunc(req.Messages, func(m chat.Message) bool { return m.Role == "assistant" || m.Role == "tool" })
	texts := make([]string, len(req.Messages))
	for i, m := range req.Messages {
		if m.Content.HasMedia() {
			return "", tea.Errorf(tea.ValidationError, "provider command cannot send images and files: the prompt is text")
		}
		if texts[i] = m.Content.Text(); isConversation {
			texts[i] = m.Role + ": " + texts[i]
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// notSent lists the parameters of a request that a program does not get.
func notSent(req *chat.Request) (names []string) {
	for name, isSet := range map[string]bool{
		"max_tokens": req.MaxTokens > 0, "seed": req.Seed != nil, "stop": req.Stop != nil, "temperature": req.Temperature != nil, "top_p": req.TopP != nil,
		"extra": len(req.Extra) > 0,
	} {
		if isSet {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// outcome returns the error for the end of the program; nil if it has answered.
func (p *Provider) outcome(ctx context.Context, cmd *exec.Cmd, err error, stderr string) *tea.Error {
	if ctx.Err() != nil {
		e := tea.AsError(context.Cause(ctx))
		return tea.Errorf(e.Type, "command %q was killed: %w", p.name, e)
	}
	if cmd.ProcessState == nil {
		kind := tea.InternalError
		switch {
		case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
			kind = tea.NotFound
		case errors.Is(err, fs.ErrPermission):
			kind = tea.PermissionDenied
		}
		return tea.Errorf(kind, "command %q did not start: %w", p.name, err)
	}
	code := cmd.ProcessState.ExitCode()
	if code == 0 {
		return nil
	}
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if code < 0 {
		return tea.Errorf(Failed, "command %q was ended by a signal: %w", p.name, err)
	}
	return tea.Errorf(Failed, "command %q ended with exit code %d: %s", p.name, code, cmp.Or(lines[len(lines)-1], "no message on standard error"))
}

// sender passes what is written to it to a channel, until the context ends.
type sender struct {
	ctx    context.Context
	chunks chan<- string
}

func (s *sender) Write(data []byte) (int, error) {
	select {
	case s.chunks <- string(data):
		return len(data), nil
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
}

// tail keeps the end of an output.
type tail struct{ text string }

const maxTail = 4096

func (t *tail) Write(data []byte) (int, error) {
	text := t.text + string(data[max(0, len(data)-maxTail):])
	t.text = strings.ToValidUTF8(text[max(0, len(text)-maxTail):], "\uFFFD")
	return len(data), nil
}

// assembly assembles an answer from the chunks of an output.
type assembly struct {
	pieces chat.Pieces
	size   int
	// held is an incomplete character or white space, which may be at the end of the answer.
	held string
}

func (a *assembly) add(chunk string) *tea.Error {
	a.size += len(chunk)
	if a.pieces.Max > 0 && a.size > a.pieces.Max {
		return tea.Errorf(tea.ResourceExhausted, "the output of the command is larger than max_answer_bytes (%d bytes)", a.pieces.Max)
	}
	text := a.held + chunk
	whole := strings.TrimRight(text[:value.WholeRunes(text)], " \t\r\n")
	a.held = text[len(whole):]
	if whole != "" {
		a.pieces.Add(strings.ToValidUTF8(whole, "\uFFFD"), "")
	}
	return nil
}

func (a *assembly) finish() *chat.Answer {
	if rest := strings.TrimRight(a.held, " \t\r\n"); rest != "" {
		a.pieces.Add(strings.ToValidUTF8(rest, "\uFFFD"), "")
	}
	answer := &chat.Answer{}
	a.pieces.End(answer)
	answer.Finish(chat.FinishStop)
	return answer
}
