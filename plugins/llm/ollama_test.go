package llm_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm"
	"github.com/the-edge-agent/tea/plugins/llm/internal/ollamatest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// realServer is the Ollama that the tests of this file share. It is started by
// the first that needs it and stopped when all tests are over.
var realServer struct {
	once   sync.Once
	dir    string
	server *ollamatest.Server
	err    error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if realServer.server != nil {
		realServer.server.Stop()
	}
	if realServer.dir != "" {
		os.RemoveAll(realServer.dir)
	}
	os.Exit(code)
}

func startRealServer() {
	program, err := ollamatest.Find()
	if err != nil {
		realServer.err = err
		return
	}
	if realServer.dir, realServer.err = os.MkdirTemp("", "tea-ollama"); realServer.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	realServer.server, realServer.err = ollamatest.Start(ctx, program, realServer.dir)
}

// ollamaURL returns the address of a real Ollama. Without one the test is
// skipped; in CI that is a failure.
func ollamaURL(t *testing.T) string {
	t.Helper()
	peertest.Long(t, "needs a real server")
	realServer.once.Do(startRealServer)
	if err := realServer.err; errors.Is(err, ollamatest.ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return realServer.server.URL
}

// bothProtocols runs a test against Ollama's native protocol and its
// OpenAI-compatible one.
func bothProtocols(t *testing.T, model string, test func(t *testing.T, settings map[string]any)) {
	url := ollamaURL(t)
	for provider, base := range map[string]string{"ollama": url, "openai": url + "/v1"} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			test(t, map[string]any{"provider": provider, "api_base": base, "model": model})
		})
	}
}

func TestRealCall(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "tiny", func(t *testing.T, settings map[string]any) {
		got, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "How warm is it?", "temperature": 1.5})
		if err != nil {
			t.Fatal(err)
		}
		usage := got["usage"].(map[string]any)
		if got["content"] != ollamatest.TinyAnswer || got["finish_reason"] != "stop" || got["model"] != "tiny" ||
			usage["estimated"] != false || usage["output_tokens"].(int64) < 10 {
			t.Errorf("got %v", got)
		}
	})
}

func TestRealStream(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "tiny", func(t *testing.T, settings map[string]any) {
		host := &teatest.Host{}
		got, err := call(t, host, "llm.stream", settings, map[string]any{"prompt": "How warm is it?"})
		if err != nil {
			t.Fatal(err)
		}
		tokens := host.Recorded().Tokens
		if strings.Join(tokens, "") != ollamatest.TinyAnswer || len(tokens) < 9 || got["content"] != ollamatest.TinyAnswer {
			t.Errorf("tokens %q, content %q", tokens, got["content"])
		}
		if usage := got["usage"].(map[string]any); usage["estimated"] != false {
			t.Errorf("usage %v", usage)
		}
	})
}

func TestRealLimit(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "tiny", func(t *testing.T, settings map[string]any) {
		got, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "How warm is it?", "max_tokens": 2})
		if err != nil || got["finish_reason"] != "length" || got["content"] != "The sensor" {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestRealTools(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "tiny-tools", func(t *testing.T, settings map[string]any) {
		for _, stream := range []bool{false, true} {
			host := adder()
			got, err := call(t, host, "llm.tools", settings, map[string]any{
				"prompt": "Add!", "stream": stream, "tools": []any{map[string]any{"name": "add", "action": "math.add"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got["content"] != ollamatest.AddAnswer || got["rounds"] != int64(1) {
				t.Errorf("got %v", got)
			}
			if diff := cmp.Diff([]teatest.Invoked{{Action: "math.add", Params: map[string]any{"x": int64(1)}}}, host.Recorded().Invoked); diff != "" {
				t.Error(diff)
			}
		}
	})
}

func TestRealStructuredAnswer(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "tiny-tools", func(t *testing.T, settings map[string]any) {
		got, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "Which call?", "schema": map[string]any{
			"type": "object", "required": []any{"name", "arguments"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"name": "add", "arguments": map[string]any{"x": int64(1)}}
		if diff := cmp.Diff(want, got["data"]); diff != "" || got["repairs"] != nil {
			t.Errorf("%v repairs %s", got["repairs"], diff)
		}
	})
}

func TestRealEmbeddings(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "tiny", func(t *testing.T, settings map[string]any) {
		got, err := call(t, nil, "embedding.create", settings, map[string]any{"input": []any{"cold", "warm", "cold"}, "batch_size": 2})
		if err != nil {
			t.Fatal(err)
		}
		vectors := got["embeddings"].([]any)
		if got["dimensions"] != int64(64) || len(vectors) != 3 || cmp.Equal(vectors[0], vectors[1]) || !cmp.Equal(vectors[0], vectors[2]) {
			t.Errorf("%v dimensions, %d vectors", got["dimensions"], len(vectors))
		}
	})
}

func TestRealMissingModel(t *testing.T) {
	t.Parallel()
	bothProtocols(t, "no-such-model", func(t *testing.T, settings map[string]any) {
		for _, action := range []string{"llm.call", "llm.stream"} {
			_, err := call(t, nil, action, settings, map[string]any{"prompt": "hi"})
			if err == nil || err.Type != tea.NotFound || !strings.Contains(err.Message, "no-such-model") {
				t.Errorf("%s: got %v", action, err)
			}
		}
	})
}

// What was recorded from a real server is played back the same when the
// server is gone.
func TestRealRecording(t *testing.T) {
	t.Parallel()
	replay := map[string]any{"file": t.TempDir() + "/answers.jsonl", "record": true, "provider": "ollama"}
	settings := map[string]any{"provider": "replay", "api_base": ollamaURL(t), "model": "tiny", "replay": replay}
	for _, record := range []bool{true, false} {
		replay["record"] = record
		if !record {
			delete(settings, "api_base")
		}
		host := &teatest.Host{}
		got, err := call(t, host, "llm.stream", settings, map[string]any{"prompt": "How warm is it?"})
		if err != nil {
			t.Fatal(err)
		}
		if tokens := host.Recorded().Tokens; len(tokens) < 9 || strings.Join(tokens, "") != ollamatest.TinyAnswer || got["content"] != ollamatest.TinyAnswer {
			t.Errorf("record %v: tokens %q", record, tokens)
		}
	}
}

// stopping is a host that cancels the call at the first token.
type stopping struct {
	teatest.Host
	cancel context.CancelFunc
}

func (h *stopping) Token(context.Context, string) { h.cancel() }

func TestRealCancel(t *testing.T) {
	t.Parallel()
	bundle := llm.Bundle()
	settings := fmt.Appendf(nil, `{"provider":"ollama","api_base":%q,"model":"tiny"}`, ollamaURL(t))
	instance, err := bundle.NewInstance(t.Context(), tea.Settings{"llm": settings})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := instance.Close(); err != nil {
			t.Error(err)
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = instance.Invoke(ctx, &tea.Request{Action: "llm.stream", Params: tea.RawPayload([]byte(`{"prompt":"hi"}`)), Host: &stopping{cancel: cancel}})
	if e := tea.AsError(err); e == nil || e.Type != tea.Canceled {
		t.Errorf("got %v", err)
	}
}
