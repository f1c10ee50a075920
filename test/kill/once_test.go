package kill

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// pump counts the orders that reach it, and tells the number.
type pump struct{ starts atomic.Int64 }

func (p *pump) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost {
		p.starts.Add(1)
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"starts": %d}`, p.starts.Load())
}

// TestEffectsHappenAtMostOnce kills a run at each system call that changes the disk or
// uses the network. The effect never happens twice, and a run that is done had it.
func TestEffectsHappenAtMostOnce(t *testing.T) {
	t.Parallel()
	strace := needStrace(t)
	for name, c := range map[string]struct {
		node string
		// done is the number of effects of runs that are done; others end with an unknown
		// outcome.
		done    int64
		unknown bool
	}{
		"fail":   {"", 1, true},
		"verify": {", on_unknown: verify, verify: {uses: http.get, with: {url: '%[1]s'}, if: result.body.starts > 0}", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, call := range []string{"write", "fsync", "fdatasync", "connect", "read", "close"} {
				t.Run(call, func(t *testing.T) {
					t.Parallel()
					var unknown, done int
					for n, killed := 1, true; killed; n++ {
						p := &pump{}
						server := httptest.NewServer(p)
						d := newDevice(t)
						flow := fmt.Sprintf("nodes: [{name: start, uses: http.post, with: {url: '%[1]s', json: {on: true}}, output: {}, effects: once"+c.node+"}]", server.URL)
						if err := os.WriteFile(filepath.Join(d.dir, "pump.yaml"), []byte(flow), 0o600); err != nil {
							t.Fatal(err)
						}
						inject := fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n)
						code, out := d.run(d.command(strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", inject, tea, "run", "pump.yaml", "-c", "runs"))
						if killed = code < 0; !killed && code != 0 {
							t.Fatalf("exit code %d\n%s", code, out)
						}
						runs := d.runs()
						if len(runs) == 0 {
							if p.starts.Load() != 0 {
								t.Fatalf("%s number %d: an effect without a run", call, n)
							}
							server.Close()
							continue
						}
						d.status(runs[0]) // opened and closed without use
						code, out = d.run(d.command(tea, "resume", runs[0], "-c", "runs"))
						starts := p.starts.Load()
						server.Close()
						switch {
						case code == 0 && starts == c.done:
							done++
						case code == 1 && c.unknown && starts <= 1 && strings.Contains(out, "unknown_outcome"):
							unknown++
						default:
							t.Fatalf("%s number %d: %d effects, exit code %d\n%s", call, n, starts, code, out)
						}
					}
					t.Logf("%d done, %d unknown", done, unknown)
				})
			}
		})
	}
}

// A question about an effect is answered like others.
func TestUnknownEffectIsAskedFor(t *testing.T) {
	t.Parallel()
	p := &pump{}
	hang := make(chan struct{})
	reached := make(chan struct{}, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r)
		if p.starts.Load() == 1 {
			reached <- struct{}{}
			<-hang
		}
	}))
	defer server.Close()
	defer close(hang)
	d := newDevice(t)
	flow := fmt.Sprintf("nodes: [{name: start, uses: http.post, with: {url: '%s', json: {}}, output: {}, effects: once, on_unknown: ask}]", server.URL)
	if err := os.WriteFile(filepath.Join(d.dir, "pump.yaml"), []byte(flow), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := d.command(tea, "run", "pump.yaml", "-c", "runs")
	d.afterStart = func() {
		<-reached
		cmd.Process.Kill()
	}
	if code, out := d.run(cmd); code >= 0 {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	run := d.runs()[0]
	d.must(stopped, "resume", run, "-c", "runs")
	out, err := d.command(tea, "runs", "show", run, "-c", "runs", "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var shown struct {
		Pending []struct{ ID, Question string }
	}
	if err := json.Unmarshal(out, &shown); err != nil || len(shown.Pending) != 1 || !strings.Contains(shown.Pending[0].Question, `Did http.post of node "start" happen?`) {
		t.Fatalf("%v\n%s", err, out)
	}
	d.must(0, "resume", run, "-c", "runs", "--answer", shown.Pending[0].ID+`="repeat it"`)
	if n := p.starts.Load(); n != 2 {
		t.Errorf("%d effects", n)
	}
}
