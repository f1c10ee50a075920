package vector

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// handles returns how often this process has a file of the folder open.
func handles(t *testing.T, dir string) (n int) {
	t.Helper()
	all, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, handle := range all {
		if path, err := os.Readlink(handle); err == nil && strings.HasPrefix(path, dir+"/") { // or it was closed meanwhile
			n++
		}
	}
	return n
}

// An index has its file open once, whatever replaces the file or its content, and
// not at all after Close.
func TestFileIsClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "vectors")
	good := smallFile(t)
	check := func(when string, want int) {
		t.Helper()
		if got := handles(t, dir); got != want {
			t.Errorf("%s: %d open files, want %d", when, got, want)
		}
	}
	for at, damaged := range map[int]bool{0: true, len(good) / 3: false, len(good) - 1: true, len(good): false} {
		b := bytes.Clone(good)
		if at < len(b) {
			b[at] ^= 1
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		ix := open(t, path, smallOptions)
		if damaged != (ix.Discarded() != nil) {
			t.Fatal(at, ix.Discarded())
		}
		if damaged {
			check("a damaged file", 0)
		} else {
			check("a file", 1)
		}
		if _, err := ix.Search(t.Context(), ones(5), 1000, SearchOptions{Exact: true}); err != nil && !errors.Is(err, ErrDamaged) {
			t.Fatal(err)
		}
		if err := ix.Close(); err != nil {
			t.Fatal(err)
		}
		check("closed", 0)
	}

	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	ix := open(t, path, smallOptions)
	query := newSource(5, 4, 0.5).next()
	v, err := ix.currentView() // a search that lasts
	if err != nil {
		t.Fatal(err)
	}
	for seq := int64(301); seq < 304; seq++ {
		put(t, ix, seq, seq, query...)
		if err := ix.Flush(); err != nil {
			t.Fatal(err)
		}
		check("flushed", 1)
	}
	for id := range int64(100) {
		remove(t, ix, id, 400+id)
	}
	settle(t, ix)
	if got := ix.Stats().Generation; got == 0 {
		t.Error("not compacted")
	}
	check("compacted during a search", 1)
	best := &ranking{k: 1}
	if err := v.scan(t.Context(), newTarget(append(query, 0, 0, 0)), 0, nil, 1, best); err != nil || v.damaged() != nil || len(best.hits) != 1 {
		t.Error(best.hits, err, v.damaged())
	}
	v.release()
	check("compacted", 0)
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	check("flushed", 1)
	if err := ix.Reset(); err != nil {
		t.Fatal(err)
	}
	check("reset", 0)
	put(t, ix, 1, 1, query...)
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	check("flushed", 1)
	if v, err = ix.currentView(); err != nil {
		t.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		t.Fatal(err)
	}
	check("closed during a search", 1)
	v.release()
	check("closed", 0)
}

// A process that flushes again and again is killed at each system call.
func TestKillAtEachSystemCallLeavesACompleteFile(t *testing.T) {
	t.Parallel()
	strace, err := exec.LookPath("strace")
	if err == nil {
		err = exec.CommandContext(t.Context(), strace, "-o", "/dev/null", "true").Run()
	}
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("skipped: the kills need strace (scripts/strace install) and the right to trace: %v", err)
	} else if err != nil {
		t.Fatalf("strace: %v; scripts/strace install installs it", err)
	}
	good := smallFile(t)
	path := filepath.Join(t.TempDir(), "vectors")
	for _, call := range []string{"openat", "write", "close", "fsync", "/^rename", "/^unlink"} {
		for n := 1; n < 16; n++ {
			if err := os.WriteFile(path, good, 0o600); err != nil {
				t.Fatal(err)
			}
			inject := fmt.Sprintf("inject=%s:signal=SIGKILL:when=%d", call, n)
			child := exec.CommandContext(t.Context(), strace, "-f", "-qq", "-o", "/dev/null", "-e", "trace="+call, "-e", inject, os.Args[0])
			child.Env = append(os.Environ(), flusherEnv+"="+path)
			acknowledged, err := child.Output()
			if child.ProcessState == nil || child.ProcessState.Exited() {
				t.Fatal(call, n, err)
			}
			ix := open(t, path, smallOptions)
			got := ix.Stats()
			if ix.Discarded() != nil || got.Watermark < 300+int64(len(acknowledged)) || int64(got.Vectors) != 131+got.Watermark-300 {
				t.Fatalf("%s %d: %+v after %d: %v", call, n, got, len(acknowledged), ix.Discarded())
			}
			if hits := search(t, ix, ones(5), 1000, SearchOptions{Exact: true}); len(hits) != got.Vectors {
				t.Errorf("%s %d: %d hits of %d", call, n, len(hits), got.Vectors)
			}
		}
	}
}
