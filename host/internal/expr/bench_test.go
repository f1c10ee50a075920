package expr_test

import (
	"context"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

func benchmarkTemplate(b *testing.B, text string) {
	t := mustCompile(b, text)
	s := expr.Scope(jinjaState())
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := t.Eval(ctx, s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookup(b *testing.B) { benchmarkTemplate(b, `{{ state.nested.list[1].x }}`) }
func BenchmarkMixedText(b *testing.B) {
	benchmarkTemplate(b, `Hello {{ state.name }}, {{ state.count }} of you!`)
}

func BenchmarkFilter(b *testing.B) { benchmarkTemplate(b, `{{ state.words | join(", ") | upper }}`) }

func BenchmarkComparison(b *testing.B) { benchmarkTemplate(b, `{{ state.count > 2 and state.yes }}`) }

func BenchmarkLoop(b *testing.B) {
	benchmarkTemplate(b, `{% for u in state.users %}{{ loop.index }}: {{ u.name }}{% endfor %}`)
}

func BenchmarkValue(b *testing.B) {
	v, faults := compileValue(parameters(), nil)
	if err := faults.Err(); err != nil {
		b.Fatal(err)
	}
	s := expr.Scope(jinjaState())
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := v.Eval(ctx, s); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCompileValue(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		compileValue(parameters(), func(path string, _, _ int) diag.Pos { return diag.Pos{Path: path} })
	}
}

// parameters is a call's `with` of ten keys.
func parameters() any {
	return object{
		"model": "small", "temperature": 0.2, "max_tokens": int64(256), "stream": false, "stop": list{"\n"},
		"prompt": "Explain {{ state.name }} in {{ state.count }} lines.", "name": "{{ state.name }}",
		"first": "{{ state.nums[0] }}", "words": "{{ state.words | join(', ') }}",
		"headers": object{"x-count": "{{ state.count }}"},
	}
}
