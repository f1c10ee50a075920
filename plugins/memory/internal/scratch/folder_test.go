package scratch_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/scratch"
)

func TestMain(m *testing.M) {
	if os.Getenv("TEA_TEST_SCRATCH") == "" {
		os.Exit(m.Run())
	}
	var folder scratch.Folder
	path, err := folder.Path()
	if err == nil {
		err = os.WriteFile(filepath.Join(path, "index"), []byte("text"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(path)
	_, _ = io.Copy(io.Discard, os.Stdin) // until it is killed
}

// process is a process with a folder below tmp.
func process(t *testing.T, tmp string) (path string, kill func()) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "TEA_TEST_SCRATCH=1", "TMPDIR="+tmp, "TMP="+tmp)
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
	kill = func() { _, _, _ = cmd.Process.Kill(), stdin.Close(), cmd.Wait() }
	t.Cleanup(kill)
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(line), kill
}

func TestFoldersOfKilledProcessesAreRemoved(t *testing.T) {
	t.Parallel()
	tmp := t.TempDir()
	killed, kill := process(t, tmp)
	running, _ := process(t, tmp)
	kill()
	unlocked, foreign := filepath.Join(tmp, "tea-memory-1"), filepath.Join(tmp, "tea-memory-of-someone", "else")
	for _, dir := range []string{unlocked, foreign} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own, _ := process(t, tmp)
	for path, want := range map[string]bool{killed: false, running: true, unlocked: false, foreign: true, own: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", path, err == nil, want)
		}
	}
	if entries, err := os.ReadDir(running); err != nil || len(entries) != 2 {
		t.Errorf("the folder of a running process has %v (%v), want its lock and its file", entries, err)
	}
}

func TestProcessesThatStartTogetherKeepTheirFolders(t *testing.T) {
	t.Parallel()
	const n = 20
	folders, done := [n]scratch.Folder{}, make(chan error, n)
	t.Cleanup(func() {
		for i := range folders {
			_ = folders[i].Remove()
		}
	})
	for i := range folders {
		go func() {
			path, err := folders[i].Path()
			if err == nil {
				_, err = os.Stat(path)
			}
			done <- err
		}()
	}
	for range folders {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func TestRemovedFolderIsCreatedAgain(t *testing.T) {
	t.Parallel()
	var f scratch.Folder
	if err := f.Remove(); err != nil { // it was never used
		t.Fatal(err)
	}
	for range 2 {
		path, err := f.Path()
		if err != nil {
			t.Fatal(err)
		}
		if again, err := f.Path(); err != nil || again != path {
			t.Errorf("the second path is %s (%v), want %s", again, err, path)
		}
		if err := f.Remove(); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is there after Remove", path)
		}
	}
}
