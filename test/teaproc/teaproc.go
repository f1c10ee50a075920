// Package teaproc runs the real binary in tests, reads its events, and kills it.
// Start with [Process].
package teaproc

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// Main builds programs, by their packages in the repository, into a new
// directory, passes it to use, runs the tests of a package that is two levels
// below the root, and exits.
func Main(m *testing.M, use func(bin string), packages ...string) {
	peertest.LongPackage("it builds and kills programs")
	code, err := buildAndRun(m, use, packages)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

func buildAndRun(m *testing.M, use func(bin string), packages []string) (code int, err error) {
	dir, err := os.MkdirTemp("", "tea-test-")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	for _, pkg := range packages {
		build := exec.CommandContext(context.Background(), "go", "build", "-o", filepath.Join(dir, filepath.Base(pkg)), "./"+pkg)
		build.Dir = "../.."
		if out, err := build.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build %s: %w\n%s", pkg, err, out)
		}
	}
	use(dir)
	return m.Run(), nil
}

// Kills returns how many kills a test makes: TEA_KILLS sets another number.
func Kills(t *testing.T, normally int) int {
	t.Helper()
	if text := os.Getenv("TEA_KILLS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("TEA_KILLS: %v", err)
		}
		return n
	}
	return normally
}

// Event is an event of a run.
type Event struct {
	RunID string `json:"run_id"`
	Event string `json:"event"`
	Path  string `json:"path"`
}

// Process is a command of tea that prints events.
type Process struct {
	Program string
	Args    []string // --stream is added
	Dir     string
	Env     []string // nil = the test's
	// Saw is called with each event.
	Saw func(Event)
	// Kill, unless it is nil, runs next to the process and kills it. Its context
	// ends with the process.
	Kill func(ctx context.Context, process *os.Process)
}

// End is the end of a process.
type End struct {
	// Code is the exit code, -1 after a kill.
	Code   int
	Stderr string
}

// Killed reports whether the process was killed.
func (e End) Killed() bool { return e.Code == -1 }

// Run runs the process until it ends.
func (p Process) Run(t *testing.T) End {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), p.Program, append(p.Args[:len(p.Args):len(p.Args)], "--stream")...)
	cmd.Dir, cmd.Env = p.Dir, p.Env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, done := context.WithCancel(t.Context())
	var killer sync.WaitGroup
	if p.Kill != nil {
		killer.Go(func() { p.Kill(ctx, cmd.Process) })
	}
	p.read(t, bufio.NewReader(out))
	err = cmd.Wait()
	done()
	killer.Wait()
	var exited *exec.ExitError
	if err != nil && !errors.As(err, &exited) {
		t.Fatalf("tea %s: %v", strings.Join(p.Args, " "), err)
	}
	return End{Code: cmd.ProcessState.ExitCode(), Stderr: stderr.String()}
}

// read follows the events; a line that the kill cut off is not an event.
func (p Process) read(t *testing.T, lines *bufio.Reader) {
	t.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("event %q: %v", line, err)
			return
		}
		p.Saw(e)
	}
}

// After returns what kills a process after a while.
func After(d time.Duration, kill func(*os.Process)) func(context.Context, *os.Process) {
	return func(ctx context.Context, process *os.Process) {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			kill(process)
		case <-ctx.Done():
		}
	}
}

// Kill kills a process, which can have ended.
func Kill(process *os.Process) { _ = process.Kill() }
