//go:build unix

package command

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/the-edge-agent/tea/plugins/llm/internal/chat"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/proctest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shell returns a provider that runs a script.
func shell(script string) *Provider {
	return New("sh", Program{Argv: []string{"/bin/sh", "-c", script}, Env: map[string]string{"MODE": "fast"}}, 1<<16)
}

func asking(text string) *chat.Request {
	return &chat.Request{Messages: []chat.Message{chat.Text("user", text)}}
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, script, prompt, want string }{
		{"the prompt is its input, not code", "cat", "$(id); `id` ' \" \\", "$(id); `id` ' \" \\"},
		{"white space at the end", "printf 'yes\\n\\n'", "", "yes"},
		{"its environment", "echo $MODE $LANG $HOME; pwd", "", "fast C.UTF-8\n/"},
		{"bytes that are not text", `printf 'a\377b\303'`, "", "a\uFFFDb\uFFFD"},
		{"an escape sequence of JSON", `printf '\\ud83d'`, "", `\ud83d`},
		{"an input that it does not read", "echo ok", strings.Repeat("x", 1<<20), "ok"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := shell(test.script).Chat(t.Context(), asking(test.prompt), nil)
			if err != nil || got.Text != test.want || got.FinishReason != chat.FinishStop {
				t.Errorf("got %+v, %v; want %q", got, err, test.want)
			}
		})
	}
}

func TestPrompt(t *testing.T) {
	t.Parallel()
	system, user, said := chat.Text("system", "be brief"), chat.Text("user", "why?"), chat.Text("assistant", "so")
	for want, messages := range map[string][]chat.Message{
		"be brief\n\nwhy?": {system, user},
		"system: be brief\n\nuser: why?\n\nassistant: so\n\nuser: why?": {system, user, said, user},
	} {
		if got, err := promptOf(&chat.Request{Messages: messages}); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}
}

func TestFailuresOfPrograms(t *testing.T) {
	t.Parallel()
	notExecutable := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(notExecutable, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		p       *Provider
		want    tea.ErrorType
		message string
	}{
		{"exit code", shell("echo first >&2; echo no key >&2; exit 3"), Failed, `command "sh" ended with exit code 3: no key`},
		{"silent exit code", shell("exit 1"), Failed, "no message on standard error"},
		{"signal", shell("kill -9 $$"), Failed, "ended by a signal"},
		{"no such program", New("x", Program{Argv: []string{"no-such-program"}}, 0), tea.NotFound, `command "x" did not start`},
		{"not executable", New("x", Program{Argv: []string{notExecutable}}, 0), tea.PermissionDenied, "did not start"},
		{"endless output", shell("while :; do echo 1234567890123456789012345678901234567890; done"), tea.ResourceExhausted, "larger than max_answer_bytes (65536 bytes)"},
		{"endless white space", shell("while :; do echo; done"), tea.ResourceExhausted, "max_answer_bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := test.p.Chat(t.Context(), asking(""), nil)
			var e *tea.Error
			if !errors.As(err, &e) || e.Type != test.want || !strings.Contains(e.Message, test.message) || e.Details != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// The program continues only after its first piece was emitted.
func TestStreamedWhileItRuns(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "seen")
	p := shell("printf 'one '; printf 'two'; while [ ! -e " + seen + " ]; do sleep 0.01; done; printf ' three\\n'; exit 4")
	var pieces []string
	_, err := p.Chat(t.Context(), asking(""), func(d chat.Delta) {
		if pieces = append(pieces, d.Text); strings.Join(pieces, "") == "one two" {
			if err := os.WriteFile(seen, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	if got := strings.Join(pieces, ""); got != "one two three" {
		t.Errorf("emitted %q", got)
	}
	if e := tea.AsError(err); e == nil || e.Type != Failed || e.Details["tokens"] != int64(len(pieces)) {
		t.Errorf("got %v", err)
	}
}

func TestSplitCharacter(t *testing.T) {
	t.Parallel()
	var a assembly
	for _, chunk := range []string{"a \n", "b\xe2", "\x9c\x93 ", "\n"} {
		if err := a.add(chunk); err != nil {
			t.Fatal(err)
		}
	}
	if got := a.finish().Text; got != "a \nb✓" {
		t.Errorf("got %q", got)
	}
}

func TestCancelKillsTheGroup(t *testing.T) {
	t.Parallel()
	for name, limit := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"cancel": context.WithCancel,
		"time-out": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(tea.Errorf(tea.Timeout, "too late")) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := limit(t.Context())
			defer cancel()
			var child int
			_, err := shell("sleep 1000 & echo $!; wait").Chat(ctx, asking(""), func(d chat.Delta) {
				child, _ = strconv.Atoi(d.Text)
				cancel()
			})
			want := tea.Canceled
			if name == "time-out" {
				want = tea.Timeout
			}
			if e := tea.AsError(err); e == nil || e.Type != want || !strings.Contains(e.Message, `command "sh" was killed`) {
				t.Errorf("got %v", err)
			}
			if child == 0 {
				t.Fatal("the child did not start")
			}
			if left := proctest.Await(10*time.Second, child); len(left) > 0 {
				t.Errorf("process %d is alive", child)
			}
		})
	}
}
