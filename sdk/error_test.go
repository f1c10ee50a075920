package tea_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"testing"

	tea "github.com/the-edge-agent/tea/sdk"
)

func TestErrorf(t *testing.T) {
	t.Parallel()
	err := tea.Errorf(tea.NotFound, "read %s: %w", "x", fs.ErrNotExist)
	if err.Error() != "not_found: read x: file does not exist" || err.Retryable || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, retryable %v", err, err.Retryable)
	}
	err = tea.Errorf(tea.ConnectionError, "both: %w, %w", io.EOF, fs.ErrClosed)
	err.Source = "example.com"
	if !errors.Is(err, io.EOF) || !errors.Is(err, fs.ErrClosed) || !err.Retryable {
		t.Errorf("%v loses a cause", err)
	}
	if want := "connection_error: both: EOF, file already closed (example.com)"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
	for _, passes := range []tea.ErrorType{tea.Timeout, tea.ConnectionError, tea.RateLimited, tea.PluginCrashed} {
		if !tea.Errorf(passes, "x").Retryable {
			t.Errorf("%s is not retryable", passes)
		}
	}
}

func TestAsError(t *testing.T) {
	t.Parallel()
	own := tea.Errorf(tea.QueryError, "bad")
	for _, test := range []struct {
		err       error
		want      tea.ErrorType
		retryable bool
	}{
		{own, tea.QueryError, false},
		{fmt.Errorf("more: %w", own), tea.QueryError, false},
		{fmt.Errorf("call: %w", context.DeadlineExceeded), tea.Timeout, true},
		{context.Canceled, tea.Canceled, false},
		{io.EOF, tea.InternalError, false},
	} {
		got := tea.AsError(test.err)
		if got.Type != test.want || got.Retryable != test.retryable || !errors.Is(got, test.err) && got != own {
			t.Errorf("%v becomes %v", test.err, got)
		}
	}
	if tea.AsError(nil) != nil {
		t.Error("nil is an error")
	}
}

func ExampleErrorf() {
	err := tea.Errorf(tea.RateLimited, "the server wants a pause: %w", io.ErrNoProgress)
	fmt.Println(err)
	fmt.Println(err.Retryable, errors.Is(err, io.ErrNoProgress))
	// Output:
	// rate_limited: the server wants a pause: multiple Read calls return no data or error
	// true true
}

// A full disk is resource_exhausted wherever an action meets it.
func TestFullDiskIsResourceExhausted(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("write the report: %w", &fs.PathError{Op: "write", Path: "r.md", Err: syscall.ENOSPC})
	if e := tea.AsError(err); e.Type != tea.ResourceExhausted || e.Retryable {
		t.Errorf("got %v", e)
	}
}
