package kill

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/test/teaproc"
)

var tea string

func TestMain(m *testing.M) {
	teaproc.Main(m, func(bin string) { tea = filepath.Join(bin, "tea") }, "cmd/tea", "plugins/device/cmd/tea-plugin-device", "plugins/plan/cmd/tea-plugin-plan")
}

// kills is how many kills one workflow gets.
func kills(t *testing.T) int { return teaproc.Kills(t, 80) }

// TestKillAndResume kills runs under sync durability and checks that no node
// whose end was reported is started again, and that the final state is the same as after an
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
				killed += v.killRepeatedly(t, rand.New(rand.NewPCG(seed, 0)), took)
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

// killRepeatedly kills the run some times, then lets it end, and counts the kills.
func (v *victim) killRepeatedly(t *testing.T, r *rand.Rand, took time.Duration) int {
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

// start starts or resumes the run; after a while, unless that is 0, it is killed.
func (v *victim) start(t *testing.T, after time.Duration) error {
	t.Helper()
	args := []string{"run", v.file}
	if v.run != "" {
		args = []string{"resume", v.run}
	}
	p := teaproc.Process{Program: tea, Args: append(args, "-c", filepath.Join(v.dir, "runs"), "-o", v.output()), Saw: func(e teaproc.Event) { v.saw(t, e) }}
	if after > 0 {
		p.Kill = teaproc.After(after, teaproc.Kill)
	}
	end := p.Run(t)
	switch {
	case end.Killed():
		return errKilled
	case end.Code != 0:
		return fmt.Errorf("tea %s: exit code %d\n%s", strings.Join(args, " "), end.Code, end.Stderr)
	}
	return nil
}

func (v *victim) saw(t *testing.T, e teaproc.Event) {
	switch e.Event {
	case "run_start":
		v.run = e.RunID
	case "node_start":
		if v.ended[e.Path] {
			t.Errorf("run %s: %s was started again after its end was reported", v.run, e.Path)
		}
	case "node_end":
		v.ended[e.Path] = true
	}
}
