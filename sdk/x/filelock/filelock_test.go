//go:build unix || windows

package filelock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

func TestOpenOfALockedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := filelock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Open(path); !errors.Is(err, filelock.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	if err := filelock.Close(first); err != nil {
		t.Fatal(err)
	}
	second, err := filelock.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

func TestOwnNamesTheHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "owner.lock")
	// A longer text of an earlier holder does not stay behind the new one.
	if err := os.WriteFile(path, []byte(strings.Repeat("x", 200)), 0o600); err != nil {
		t.Fatal(err)
	}
	own := func(ctx context.Context, timeout time.Duration, readOnly bool) (*os.File, string) {
		f, err := filelock.Own(ctx, path, timeout, readOnly)
		if held := (*filelock.HeldError)(nil); errors.As(err, &held) {
			return nil, held.Holder
		} else if err != nil {
			return nil, err.Error()
		}
		return f, ""
	}
	writer, problem := own(t.Context(), 0, false)
	if problem != "" {
		t.Fatal(problem)
	}
	if text, err := os.ReadFile(path); err != nil || strings.Contains(string(text), "x") {
		t.Errorf("the lock file is %q, %v", text, err)
	}
	us := fmt.Sprintf("process %d (since ", os.Getpid())
	for _, readOnly := range []bool{false, true} {
		if _, problem := own(t.Context(), time.Millisecond, readOnly); !strings.HasPrefix(problem, us) {
			t.Errorf("read only %v: held by %q, want %q", readOnly, problem, us)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, problem := own(canceled, time.Hour, false); problem != context.Canceled.Error() {
		t.Errorf("canceled: %q", problem)
	}
	go filelock.Close(writer)
	one, problem := own(t.Context(), time.Minute, true)
	if problem != "" {
		t.Fatal(problem)
	}
	two, problem := own(t.Context(), 0, true)
	if problem != "" {
		t.Fatal(problem)
	}
	if _, problem := own(t.Context(), 0, false); problem != "processes that read it" {
		t.Errorf("held by %q", problem)
	}
	if err := errors.Join(filelock.Close(one), filelock.Close(two), filelock.Close(nil)); err != nil {
		t.Error(err)
	}
}

func TestOwnWithoutAFolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "none", "owner.lock")
	if f, err := filelock.Own(t.Context(), path, 0, true); f != nil || err != nil {
		t.Errorf("for reading: %v, %v, want no lock", f, err)
	}
	if _, err := filelock.Own(t.Context(), path, 0, false); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("for writing: %v", err)
	}
}
