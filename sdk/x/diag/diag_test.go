package diag_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func TestDiagnosticText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		d    diag.Diagnostic
		want string
	}{
		{diag.Diagnostic{Code: "TEA1", Severity: diag.Error, Message: "m"}, "error TEA1: m"},
		{diag.Diagnostic{Code: "TEA1", Severity: diag.Warning, Pos: diag.Pos{File: "f", Line: 3}, Message: "m", Hint: "h"}, "f:3: warning TEA1: m\n  hint: h"},
		{diag.Diagnostic{Code: "TEA1", Severity: diag.Error, Pos: diag.Pos{File: "f", Line: 3, Column: 4, Path: "a.b"}, Message: "m"}, "f:3:4: error TEA1: m (a.b)"},
		{diag.Diagnostic{Code: "TEA1", Severity: diag.Error, Pos: diag.Pos{File: "f", Column: 4}, Message: "m"}, "f: error TEA1: m"},
	} {
		if got := test.d.Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	var l diag.List
	l.Warnf("B", diag.Pos{File: "f", Line: 2}, "", "w")
	if l.HasErrors() || l.Err() != nil {
		t.Error("a warning counts as an error")
	}
	l.Errorf("C", diag.Pos{File: "f", Line: 1, Column: 9}, "", "second %d", 2)
	l.Errorf("A", diag.Pos{File: "f", Line: 1, Column: 9}, "", "first")
	l.Errorf("A", diag.Pos{File: "e", Line: 5}, "", "other file")
	l.Sort()
	want := "e:5: error A: other file\nf:1:9: error A: first\nf:1:9: error C: second 2\nf:2: warning B: w"
	if d := cmp.Diff(want, l.Error()); d != "" {
		t.Error(d)
	}
	var list diag.List
	if err := fmt.Errorf("load: %w", l.Err()); !errors.As(err, &list) || len(list) != 4 {
		t.Errorf("err = %v", err)
	}
}

func TestSuggest(t *testing.T) {
	t.Parallel()
	names := []string{"max_retries", "timeout_seconds", "url", "größe"}
	for word, want := range map[string]string{
		"max_retrys": "max_retries", "max_retires": "max_retries", "timeot_seconds": "timeout_seconds",
		"ulr": "url", "urls": "url", "grösse": "größe", "body": "", "": "", "x": "",
	} {
		if want != "" {
			want = fmt.Sprintf("did you mean %q?", want)
		}
		if got := diag.Suggest(word, names); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
