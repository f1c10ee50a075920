package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/the-edge-agent/tea/host/flow"
)

// child is a process of this test binary.
type child struct {
	cmd   *exec.Cmd
	stdin io.Closer
	lines *bufio.Scanner
}

// startChild runs this test binary in the given part; it ends at the latest
// with the test.
func startChild(t *testing.T, part, dir string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0], dir)
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return &child{cmd: cmd, stdin: stdin, lines: bufio.NewScanner(stdout)}
}

// line waits for the child's next line.
func (c *child) line(t *testing.T) string {
	t.Helper()
	if !c.lines.Scan() {
		t.Fatalf("the child ended without a word: %v", c.lines.Err())
	}
	return c.lines.Text()
}

// childAppend appends with durability sync in an endless loop and prints the number of
// each acknowledged record.
func childAppend(dir string) int {
	store, err := OpenStore(dir)
	if err != nil {
		return complain(err)
	}
	j, c, err := store.Open("run", flow.DurabilitySync)
	if err != nil {
		return complain(err)
	}
	for n := len(c.Records) + 1; ; n++ {
		// Lengths that end all over the sectors.
		body := fmt.Sprintf(`{"n":%d,"fill":%q}`, n, strings.Repeat("x", n*37%1500))
		if err := j.Append(Record{Kind: "finish", Path: "loop", Body: []byte(body)}); err != nil {
			return complain(err)
		}
		fmt.Println(n)
	}
}

// childOwn owns a run until its stdin ends.
func childOwn(dir string) int {
	store, err := OpenStore(dir)
	if err != nil {
		return complain(err)
	}
	j, _, err := store.Open("run", flow.DurabilitySync)
	if err != nil {
		return complain(err)
	}
	defer j.Close()
	fmt.Println("owner")
	io.Copy(io.Discard, os.Stdin)
	return 0
}

// childLimited fills a run up to the process's limit of file size, and says
// what happened.
func childLimited(dir string) int {
	signal.Ignore(syscall.SIGXFSZ)
	store, err := OpenStore(dir)
	if err != nil {
		return complain(err)
	}
	j, err := store.Create(Header{RunID: "run"}, flow.DurabilitySync)
	if err != nil {
		return complain(err)
	}
	limit := unix.Rlimit{Cur: 64 << 10, Max: unix.RLIM_INFINITY}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return complain(err)
	}
	n, err := fill(j)
	if !errors.Is(err, syscall.EFBIG) {
		return complain(fmt.Errorf("after %d records: %w", n, err))
	}
	limit.Cur = unix.RLIM_INFINITY
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return complain(err)
	}
	if err := j.Append(Record{Kind: "after"}); err != nil {
		return complain(err)
	}
	if err := j.Close(); err != nil {
		return complain(err)
	}
	fmt.Println(n)
	return 0
}

// fill appends records of 1 KB until one fails, and returns how many did not.
func fill(j *Journal) (int, error) {
	body := []byte(`"` + strings.Repeat("x", 1000) + `"`)
	for n := 0; ; n++ {
		if err := j.Append(Record{Kind: "fill", Body: body}); err != nil {
			return n, err
		}
	}
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "child:", err)
	return 1
}
