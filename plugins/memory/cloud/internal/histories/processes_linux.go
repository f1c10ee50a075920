package histories

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// workerVariable is the environment variable with the number of a process.
const workerVariable = "TEA_TEST_HISTORY_WORKER"

// Worker is the test that a process of [CheckProcesses] runs. It opens a memory, calls it, closes it, and prints the
// calls.
func Worker(t *testing.T, calls int, open func(t *testing.T, worker int) (stores *store.Stores, closeAll func() error)) {
	t.Helper()
	worker, err := strconv.Atoi(os.Getenv(workerVariable))
	if err != nil {
		t.Skip("this is a process of another test")
	}
	stores, closeAll := open(t, worker)
	all := history(t, calls, stores, worker, monotonic)
	if err := closeAll(); err != nil {
		t.Fatal(err)
	}
	line, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(os.Stdout, "\nhistory %s\n", line)
}

// CheckProcesses is Check with one process per device. Each runs a test that calls Worker with the same number of
// calls.
func CheckProcesses(t *testing.T, processes, calls int, test string, env ...string) {
	t.Helper()
	all := make([][]operation, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() {
			var err error
			if all[i], err = process(t, i, test, env); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	check(t, calls, all)
}

// process runs a worker and returns its calls.
func process(t *testing.T, worker int, test string, env []string) (history []operation, err error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.v")
	cmd.Env = append(append(os.Environ(), workerVariable+"="+strconv.Itoa(worker)), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("process %d: %w\n%s", worker, err, out)
	}
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "history "); ok {
			err := json.Unmarshal([]byte(text), &history)
			return history, err
		}
	}
	return nil, fmt.Errorf("process %d has printed no history:\n%s", worker, out)
}

// monotonic returns the time of the machine's monotonic clock, which all processes share.
func monotonic() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err)
	}
	return now.Nano()
}
