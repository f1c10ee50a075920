package kill

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var tea string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tea-kill")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	tea = filepath.Join(dir, "tea")
	if out, err := exec.Command("go", "build", "-o", tea, "github.com/the-edge-agent/tea/cmd/tea").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build tea: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// kills is how many kills one workflow gets; TEA_KILLS sets another number.
func kills(t *testing.T) int {
	if text := os.Getenv("TEA_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("TEA_KILLS: %v", err)
		}
		return n
	}
	if testing.Short() {
		return 10
	}
	return 80
}

// TestKillAndResume kills runs under sync durability and checks that no node
// whose end was told is started again, and that the final state is that of an
// undisturbed run.
func TestKillAndResume(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no workflows: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			undisturbed := newVictim(t, file)
			took := undisturbed.untilDone(t)
			want := undisturbed.state(t)
			killed, rounds := 0, 0
			for seed := uint64(1); killed < kills(t); seed++ {
				if rounds++; rounds > 20*kills(t) {
					t.Fatalf("only %d of %d runs could be killed", killed, rounds)
				}
				v := newVictim(t, file)
				killed += v.torment(t, rand.New(rand.NewPCG(seed, 0)), took)
				if diff := cmp.Diff(want, v.state(t)); diff != "" {
					t.Fatalf("seed %d: the final state differs from an undisturbed run's:\n%s", seed, diff)
				}
			}
			t.Logf("%d kills in %d runs", killed, rounds)
		})
	}
}

// victim is one run that is killed and resumed until it is done.
type victim struct {
	file, dir, run string
	// ended are the paths whose node_end was seen.
	ended map[string]bool
}

func newVictim(t *testing.T, file string) *victim {
	return &victim{file: file, dir: t.TempDir(), ended: map[string]bool{}}
}

func (v *victim) output() string { return filepath.Join(v.dir, "state.json") }

func (v *victim) state(t *testing.T) any {
	t.Helper()
	raw, err := os.ReadFile(v.output())
	if err != nil {
		t.Fatal(err)
	}
	var state any
	if err := json.Unmarshal(raw, &state); err != nil {
		t.Fatal(err)
	}
	return state
}

// untilDone runs without disturbance and returns how long it took.
func (v *victim) untilDone(t *testing.T) time.Duration {
	t.Helper()
	started := time.Now()
	if err := v.start(t, 0); err != nil {
		t.Fatal(err)
	}
	return time.Since(started)
}

// torment kills the run some times, then lets it end, and counts the kills.
func (v *victim) torment(t *testing.T, r *rand.Rand, took time.Duration) int {
	t.Helper()
	killed := 0
	for range 1 + r.IntN(4) {
		err := v.start(t, time.Duration(1+r.Int64N(int64(took))))
		if err == nil {
			return killed
		}
		killed++
	}
	if err := v.start(t, 0); err != nil {
		t.Fatal(err)
	}
	return killed
}

// errKilled says that the process was killed as planned.
var errKilled = errors.New("killed")

// start starts or resumes the run and reads its events; after a while, unless
// that is 0, it is killed.
func (v *victim) start(t *testing.T, after time.Duration) error {
	t.Helper()
	args := []string{"run", v.file}
	if v.run != "" {
		args = []string{"resume", v.run}
	}
	args = append(args, "--stream", "-c", filepath.Join(v.dir, "runs"), "-o", v.output())
	cmd := exec.Command(tea, args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if after > 0 {
		defer time.AfterFunc(after, func() { cmd.Process.Kill() }).Stop()
	}
	v.read(t, bufio.NewReader(out))
	err = cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			return errKilled
		}
	}
	if err != nil {
		return fmt.Errorf("tea %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return nil
}

// read follows the events; a line that the kill cut off is not an event.
func (v *victim) read(t *testing.T, lines *bufio.Reader) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var e struct {
			RunID string `json:"run_id"`
			Event string `json:"event"`
			Path  string `json:"path"`
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("event %q: %v", line, err)
			return
		}
		switch e.Event {
		case "run_start":
			v.run = e.RunID
		case "node_start":
			if v.ended[e.Path] {
				t.Errorf("run %s: %s was started again after its end was told", v.run, e.Path)
			}
		case "node_end":
			v.ended[e.Path] = true
		}
	}
}
