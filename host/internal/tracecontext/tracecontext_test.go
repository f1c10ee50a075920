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

func TestSpanIsReadBack(t *testing.T) {
	t.Parallel()
	span := tracecontext.SpanOf("a", 1)
	if got, ok := tracecontext.ParseSpan(span.String()); !ok || got != span {
		t.Errorf("got %s %v", got, ok)
	}
	for _, bad := range []string{"", span.String()[1:], "zz" + span.String()[2:]} {
		if _, ok := tracecontext.ParseSpan(bad); ok {
			t.Errorf("%q is taken for a span", bad)
		}
	}
}
