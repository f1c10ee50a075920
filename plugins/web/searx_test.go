package web_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// startSearx runs the real searx with one engine, which asks the given address.
// Without searx the test is skipped; in CI that is a failure.
func startSearx(t *testing.T, engine string) (address string) {
	t.Helper()
	peertest.Long(t, "needs a real server")
	cmd := exec.CommandContext(t.Context(), "../../scripts/searx", "serve", engine)
	var errors strings.Builder
	cmd.Stderr = &errors
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line == "" {
		err := cmd.Wait()
		if os.Getenv("CI") != "true" && cmd.ProcessState.ExitCode() == 3 {
			t.Skip(errors.String())
		}
		t.Fatalf("searx did not start: %v\n%s", err, errors.String())
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended it
	return strings.TrimSpace(line)
}

func TestRealSearx(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		results := []map[string]any{}
		for i := range 8 {
			results = append(results, map[string]any{
				"url":   fmt.Sprintf("https://a.test/%s/%d", r.URL.Query().Get("page"), i),
				"title": "Über " + r.URL.Query().Get("q"), "content": "page " + r.URL.Query().Get("page") + " & more",
			})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"results": results})
	}))
	t.Cleanup(engine.Close)
	address := startSearx(t, engine.URL+"/find?q={query}&page={pageno}")

	got, failure := searchAt(t, "searxng", address, nil, map[string]any{"query": "chá verde", "num_results": 12, "recency": "month"})
	if failure != nil {
		t.Fatal(failure)
	}
	result, _ := got.(map[string]any)
	results, _ := result["results"].([]any)
	if len(results) != 12 || result["total_results"] != int64(12) || result["notes"] != nil {
		t.Fatalf("got %v", got)
	}
	seen := map[any]bool{}
	for i, r := range results {
		found, _ := r.(map[string]any)
		seen[found["url"]] = true
		if found["title"] != "Über chá verde" || found["position"] != int64(i+1) || !strings.HasSuffix(fmt.Sprint(found["snippet"]), " & more") {
			t.Errorf("got %v", found)
		}
	}
	if len(seen) != 12 {
		t.Errorf("%d addresses", len(seen))
	}

	// No engine answers: that is not an empty result.
	broken.Store(true)
	if _, failure = searchAt(t, "searxng", address, nil, map[string]any{"query": "x"}); failure == nil || failure.Type != tea.ConnectionError || !strings.Contains(failure.Message, "local") {
		t.Errorf("got %v", failure)
	}
}
