package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// buildPeers builds the programs that are compared with tea.
func buildPeers(ctx context.Context, dir string) error {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", dir, "./bench/cmd/tea-plugin-bench", "./bench/cmd/bare-plugin")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the plugins: %w", err)
	}
	return nil
}

// measurePlugins measures an idle plugin, and the tokens of a model on their way to a
// reader of tea run.
func measurePlugins(ctx context.Context) ([]Figure, error) {
	dir, err := os.MkdirTemp("", "tea-bench")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := buildPeers(ctx, dir); err != nil {
		return nil, err
	}
	idle, err := measureIdle(ctx, dir)
	if err != nil {
		return nil, err
	}
	tokens, err := measureTokens(ctx, dir)
	return slices.Concat(idle, tokens), err
}

// idleFor is the idle time after which a plugin is measured. A plugin releases memory
// after a second.
const idleFor = 3 * time.Second

// measureIdle measures the processes of a run that waits after a call.
func measureIdle(ctx context.Context, dir string) ([]Figure, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tea := exec.CommandContext(ctx, filepath.Join("bin", "tea"), "run", "bench/testdata/idle.yaml", "--plugins", dir, "--stream", "-q")
	tea.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
	if err := startUntil(tea, func(line string) bool { return strings.Contains(line, `"node":"wait"`) }); err != nil {
		return nil, err
	}
	bare := exec.CommandContext(ctx, filepath.Join(dir, "bare-plugin"), "idle")
	in, err := bare.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	if err := startUntil(bare, func(string) bool { return true }); err != nil {
		return nil, err
	}
	select {
	case <-time.After(idleFor):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ours, err := children(tea.Process.Pid)
	if err != nil {
		return nil, err
	}
	theirs, err := children(bare.Process.Pid)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	var others float64
	for _, c := range ours {
		if strings.HasPrefix(c.name, "tea-plugin-benc") { // the kernel cuts names
			figures = append(figures, Figure{Name: "idle plugin, RSS", Value: c.rss, Unit: "MB", Limit: 14})
		} else {
			others += c.private
		}
	}
	for _, c := range theirs {
		figures = append(figures, Figure{Name: "idle plugin of bare go-plugin, RSS", Value: c.rss, Unit: "MB"})
	}
	return append(figures,
		Figure{Name: "other processes of a host with an idle plugin (the guard)", Value: float64(len(ours) - 1), Unit: "processes", Limit: 1},
		Figure{Name: "other processes of a host with an idle plugin, private memory", Value: others, Unit: "MB", Limit: 0.5}), nil
}

// startUntil starts a command and returns after a line of its output. It discards the
// rest.
func startUntil(cmd *exec.Cmd, found func(line string) bool) error {
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if found(lines.Text()) {
			go io.Copy(io.Discard, out) //nolint:errcheck // it ends with the process
			return nil
		}
	}
	return errors.Join(fmt.Errorf("%s has ended early", cmd), lines.Err(), cmd.Wait())
}

// child is a child process.
type child struct {
	name         string
	rss, private float64 // in MB
}

// children returns the child processes of a process.
func children(pid int) ([]child, error) {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", pid))
	threads, more := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err = errors.Join(err, more); err != nil {
		return nil, err
	}
	for _, thread := range threads {
		part, err := os.ReadFile(thread)
		if err != nil {
			continue // the thread has ended
		}
		list = append(append(list, ' '), part...)
	}
	var all []child
	seen := map[string]bool{}
	for _, id := range strings.Fields(string(list)) {
		if seen[id] {
			continue
		}
		seen[id] = true
		name, err := os.ReadFile("/proc/" + id + "/comm")
		if err != nil {
			return nil, err
		}
		memory, err := os.ReadFile("/proc/" + id + "/smaps_rollup")
		if err != nil {
			return nil, err
		}
		all = append(all, child{strings.TrimSpace(string(name)), kilobytes(memory, "Rss:"), kilobytes(memory, "Private_Clean:") + kilobytes(memory, "Private_Dirty:")})
	}
	return all, nil
}

// kilobytes returns a line of smaps_rollup in MB.
func kilobytes(text []byte, key string) float64 {
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) > 1 && fields[0] == key {
			n, _ := strconv.ParseFloat(fields[1], 64) // the kernel writes numbers
			return n * 1024 / 1e6
		}
	}
	return 0
}

// streamed is the number of tokens of an answer.
const streamed = 10_000

// measureTokens measures the stream of a model that answers at full speed, alternately
// through the plugin and tea run, and with a client that decodes it.
func measureTokens(ctx context.Context, dir string) ([]Figure, error) {
	model := httptest.NewServer(http.HandlerFunc(answer))
	defer model.Close()
	flow := filepath.Join(dir, "tokens.yaml")
	if err := os.WriteFile(flow, fmt.Appendf(nil, tokensWorkflow, model.URL), 0o600); err != nil {
		return nil, err
	}
	var through, direct []time.Duration
	for range 7 {
		t, err := timeStream(ctx, dir, flow)
		if err != nil {
			return nil, err
		}
		d, err := timeClient(ctx, model.URL)
		if err != nil {
			return nil, err
		}
		through, direct = append(through, t), append(direct, d)
	}
	return []Figure{
		{Name: "streamed token, model to reader of tea run, median", Value: perItem(through, streamed), Unit: "us", Limit: 20},
		{Name: "streamed token, model to a bare client, median", Value: perItem(direct, streamed), Unit: "us"},
	}, nil
}

const tokensWorkflow = `settings:
  llm: {provider: openai, api_base: %q, model: bench}
nodes:
  - {name: say, uses: llm.stream, with: {prompt: hello}}
`

// answer sends a model's answer as a stream of server-sent events.
func answer(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	for i := range streamed {
		fmt.Fprintf(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":" token%d"},"finish_reason":null}]}`+"\n\n", i%10)
		if i%10 == 0 {
			_ = http.NewResponseController(w).Flush() // a disconnected reader ends the request
		}
	}
	fmt.Fprint(w, `data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
}

// timeStream returns the time from the first to the last token of a run.
func timeStream(ctx context.Context, dir, flow string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "tea"), "run", flow, "--plugins", "bin", "--stream", "-q")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	var first, last time.Time
	var text int
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if !bytes.Contains(lines.Bytes(), []byte(`"event":"token"`)) {
			continue
		}
		var event struct{ Text string }
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			return 0, err
		}
		if text += len(event.Text); first.IsZero() {
			first = time.Now()
		}
		last = time.Now()
	}
	if err := errors.Join(lines.Err(), cmd.Wait()); err != nil {
		return 0, err
	}
	if want := streamed * len(" token0"); text != want {
		return 0, fmt.Errorf("%d bytes of tokens were read, want %d", text, want)
	}
	return last.Sub(first), nil
}

// timeClient returns the time that a client takes to read the answer.
func timeClient(ctx context.Context, url string) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, nil)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok || bytes.Equal(data, []byte("[DONE]")) {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return 0, err
		}
	}
	return time.Since(began), lines.Err()
}
