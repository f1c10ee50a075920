//go:build unix

package subproc

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestOutputOfPS(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		memory  int64
		used    time.Duration
		stopped bool
	}{
		" 1234   0:01.50 S+\n":     {1234 << 10, 1500 * time.Millisecond, false}, // macOS, BSD
		"8 101:00.25 T":            {8 << 10, 101*time.Minute + 250*time.Millisecond, true},
		"0 00:00:07 R":             {0, 7 * time.Second, false}, // Linux
		"1 2-03:04:05 T\n":         {1 << 10, 51*time.Hour + 4*time.Minute + 5*time.Second, true},
		"99 1-00:30 S and further": {99 << 10, 24*time.Hour + 30*time.Second, false},
	} {
		memory, used, stopped, known := parsePS(line)
		if memory != want.memory || used != want.used || stopped != want.stopped || !known {
			t.Errorf("%q: %d, %s, %t, %t", line, memory, used, stopped, known)
		}
	}
	for _, line := range []string{"", "1234 0:01", "x 0:01 S", "1 a:b S"} {
		if _, _, _, known := parsePS(line); known {
			t.Errorf("%q is known", line)
		}
	}
}

func TestPSKnowsThisProcess(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/ps"); err != nil {
		t.Skip("install ps (procps): ", err)
	}
	if memory, _, stopped, known := askPS(os.Getpid()); memory < 1<<20 || stopped || !known {
		t.Errorf("%d, %t, %t", memory, stopped, known)
	}
	if _, _, _, known := askPS(1 << 30); known {
		t.Error("ps knows a process that does not exist")
	}
}

func TestShellLimitsOpenFiles(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/bin/sh", "-c", "echo $$ $(ulimit -n) $1", "x", "a  b")
	limitFiles(cmd, 77)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if fields := strings.Fields(string(out)); len(fields) != 4 || fields[1] != "77" || fields[2] != "a" || fields[0] != strconv.Itoa(cmd.Process.Pid) {
		t.Errorf("%s of process %d", out, cmd.Process.Pid)
	}
}
