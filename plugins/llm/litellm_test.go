package llm_test

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/llm/internal/protocoltest"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// startLiteLLM starts the proxy LiteLLM for a server of chat completions, and returns its
// address.
func startLiteLLM(t *testing.T, backend string) string {
	t.Helper()
	dir := peertest.Dir(t, "../..", "litellm")
	config := filepath.Join(t.TempDir(), "config.yaml")
	text := fmt.Sprintf(`model_list: [{model_name: "*-test", litellm_params: {model: lm_studio/gpt-test, api_base: %q, api_key: %q}}]
general_settings: {master_key: %q}
`, backend+"/v1", protocoltest.Key, protocoltest.Key)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0") // LiteLLM does not print the port that it gets for 0
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "python", "bin", "litellm"), "--config", config, "--host", "127.0.0.1", "--port", fmt.Sprint(address.Port))
	cmd.Env = append(os.Environ(), "LITELLM_LOCAL_MODEL_COST_MAP=True", "LITELLM_TELEMETRY=False")
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var said strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), "Uvicorn running on") {
			go func() {
				for lines.Scan() { // the pipe must not fill up
				}
			}()
			return "http://" + address.String()
		}
	}
	t.Fatalf("LiteLLM did not start:\n%s", said.String())
	return ""
}

// LiteLLM, which others use with the vendors' own clients, understands the requests of each
// protocol, and its answers are understood.
func TestConversationThroughLiteLLM(t *testing.T) {
	t.Parallel()
	providers := []string{"openai", "openai-responses", "anthropic", "gemini"}
	backend := protocoltest.StartFunc(t, "openai", func(seen []protocoltest.Request) protocoltest.Step {
		if talk := seen[len(seen)-1].Talk; len(talk) > 0 && strings.HasPrefix(talk[len(talk)-1], "result: ") {
			return protocoltest.Step{Text: "five"}
		}
		return protocoltest.Step{Text: "let me add", Calls: []protocoltest.Call{addCall("call_1")}}
	})
	url := startLiteLLM(t, backend.URL)
	for _, provider := range providers {
		for _, stream := range []bool{false, true} {
			settings := map[string]any{"provider": provider, "model": provider + "-test", "api_base": url, "api_key": protocoltest.Key, "max_retries": 0}
			if strings.HasPrefix(provider, "openai") {
				settings["api_base"] = url + "/v1"
			}
			host := adder()
			got, err := call(t, host, "llm.tools", settings, map[string]any{
				"system": "be brief", "messages": []any{map[string]any{"role": "user", "content": media()[:2]}}, "tools": []any{"math.add"}, "stream": stream,
			})
			if err != nil {
				t.Errorf("%s, stream %v: %v", provider, stream, err)
				continue
			}
			if text := host.Recorded().Text(); got["content"] != "five" || stream && text != "let me addfive" {
				t.Errorf("%s, stream %v: %v, tokens %q", provider, stream, got["content"], text)
			}
			if usage := got["usage"].(map[string]any); usage["estimated"] != false || usage["output_tokens"] != int64(10) {
				t.Errorf("%s, stream %v: usage %v", provider, stream, usage)
			}
			want := []string{"system: be brief", "user: what is this?", "image: image/png", "model: let me add", `call: math_add {"x":2,"y":3}`, `result: {"sum":5}`}
			if provider == "gemini" { // LiteLLM reads inline_data, and not inlineData, which Google documents
				want = slices.Delete(want, 2, 3)
			}
			seen := backend.Seen()
			talk := seen[len(seen)-1].Talk
			for i := range talk {
				talk[i] = strings.ReplaceAll(talk[i], `": `, `":`) // its JSON has spaces
				talk[i] = strings.ReplaceAll(talk[i], `, "`, `,"`)
			}
			if diff := gocmp.Diff(want, talk); diff != "" {
				t.Errorf("%s, stream %v: %s", provider, stream, diff)
			}
		}
	}
	settings := map[string]any{"provider": "anthropic", "model": "m-test", "api_base": url, "api_key": "wrong-secret-key", "max_retries": 0}
	if _, err := call(t, nil, "llm.call", settings, map[string]any{"prompt": "hi"}); err == nil || strings.Contains(err.Error(), "wrong-secret-key") {
		t.Errorf("a wrong key: %v", err)
	}
}
