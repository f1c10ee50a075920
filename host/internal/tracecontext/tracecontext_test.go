package tracecontext_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/host/internal/tracecontext"
)

// Plugins and collectors have seen these identifiers: they must stay.
func TestIdentifiersStayTheSame(t *testing.T) {
	t.Parallel()
	trace, first, second := tracecontext.TraceOf("run1"), tracecontext.SpanOf("each[3]/fetch", 1), tracecontext.SpanOf("each[3]/fetch", 2)
	got := []string{trace.String(), first.String(), second.String(), trace.Parent(first)}
	want := []string{
		"34e9aedefffddf04c3cf3f9e055ba714", "1f2f2c1b45550b6f", "1f24fa1b454c61f4",
		"00-34e9aedefffddf04c3cf3f9e055ba714-1f2f2c1b45550b6f-01",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParentIsReadBack(t *testing.T) {
	t.Parallel()
	trace, span := tracecontext.TraceOf("run1"), tracecontext.SpanOf("a", 1)
	gotTrace, gotSpan, ok := tracecontext.ParseParent(trace.Parent(span))
	if !ok || gotTrace != trace || gotSpan != span {
		t.Errorf("got %s %s %v", gotTrace, gotSpan, ok)
	}
	good := trace.Parent(span)
	for _, bad := range []string{"", good[:54], "01" + good[2:], good[:40] + "zz" + good[42:], "00-zz" + good[5:], good[:35] + "+" + good[36:]} {
		if _, _, ok := tracecontext.ParseParent(bad); ok {
			t.Errorf("%q is taken for a trace context", bad)
		}
	}
}
