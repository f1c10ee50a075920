package file_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	tea "github.com/the-edge-agent/tea/sdk"
)

// find is a grep for a regular expression with bounds that nothing reaches.
func find(t *testing.T, pattern string) file.Grep {
	t.Helper()
	lines, err := file.LinePattern(pattern, false, false)
	if err != nil {
		t.Fatal(err)
	}
	return file.Grep{Lines: lines, MaxMatches: 1000, MaxBytes: 1 << 20}
}

func (d *device) grep(t *testing.T, g file.Grep) *file.Matches {
	t.Helper()
	found, err := d.Grep(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// places are the matches as path:line:column.
func places(found *file.Matches) string {
	var all []string
	for _, m := range found.Matches {
		all = append(all, fmt.Sprintf("%s:%d:%d", m.Path, m.Line, m.Column))
	}
	return strings.Join(all, " ")
}

func TestLinePatterns(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		pattern          string
		like, ignoreCase bool
		line             string
		from             int // of the match in bytes, -1 for none
	}{
		{"pump", true, false, "the pump is hot", 4},
		{"Pump", true, false, "the pump is hot", -1},
		{"Pump", true, true, "the pump is hot", 4},
		{"GRÜSSE", true, true, "viele grüsse", 6},
		{"pump%hot", true, false, "the pump is hot", 4},
		{"%hot%", true, false, "the pump is hot", 12},
		{"p_mp", true, false, "the pümp", 4},
		{"p_mp", true, false, "the pmp", -1},
		{`100\%`, true, false, "100 percent", -1},
		{`100\%`, true, false, "about 100%", 6},
		{`a\_b`, true, false, "axb a_b", 4},
		{`c:\\x`, true, false, `dir c:\x`, 4},
		{`end\`, true, false, `end\`, 0},
		{"a.c", true, false, "abc", -1},
		{"(", true, false, "f(x)", 1},
		{"^[a-z]+$", true, false, "abc", -1},
		{"[a-z", true, false, "x [a-z", 2},
		{`\d`, true, false, "d", 0},
		{`\d`, false, false, "d7", 1},
		{"^the", false, false, "at the", -1},
		{"hot$", false, false, "the pump is hot", 12},
		{"(?i)HOT", false, false, "the pump is hot", 12},
		{"HOT", false, true, "the pump is hot", 12},
		{"a|b", false, true, "xB", 1},
		{`\bpump\b`, false, false, "pumps pump", 6},
	} {
		re, err := file.LinePattern(test.pattern, test.like, test.ignoreCase)
		if err != nil {
			t.Fatal(err)
		}
		from := -1
		if at := re.FindStringIndex(test.line); at != nil {
			from = at[0]
		}
		want(t, fmt.Sprintf("%q, like %v, in %q", test.pattern, test.like, test.line), from, test.from)
	}
	for _, pattern := range []string{"", "(", "[a", "a**", `(a)\1`, "(?=a)", "(?<!a)b", "a{1001}", "((a{100}){100}){100}", "\xff", strings.Repeat("a", 5000), `\p{No such}`} {
		if _, err := file.LinePattern(pattern, false, false); tea.AsError(err) == nil || tea.AsError(err).Type != tea.ValidationError {
			t.Errorf("%q gives %v, want a validation_error", pattern, err)
		}
	}
}

func TestGrep(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "a.log", "one\ntwo pump\nthree\npump four pump\n\nfive\nsix pump")
		d.put(t, "b/c.md", "ä pump\r\nnext\r\n")
		d.put(t, "binary", "pump\x00pump")
		d.put(t, "latin", "pump \xe4")
		d.put(t, "archive/sessions/s/f", "pump")
		d.put(t, "empty", "")

		found := d.grep(t, find(t, "pump"))
		want(t, "places", places(found), "a.log:2:5 a.log:4:1 a.log:7:5 b/c.md:1:3")
		want(t, "searched", fmt.Sprint(found.Searched, found.Truncated), "3 false")
		want(t, "no end of line", found.Matches[3].Text, "ä pump")

		g := find(t, "pump")
		g.Archived = true
		want(t, "archived too", strings.HasSuffix(places(d.grep(t, g)), "archive/sessions/s/f:1:1 b/c.md:1:3"), true)
		g = find(t, "pump")
		var err error
		if g.Pattern, err = file.Compile("b/"); err != nil {
			t.Fatal(err)
		}
		want(t, "a folder", places(d.grep(t, g)), "b/c.md:1:3")
		g = find(t, "pump")
		g.Within = "b/"
		want(t, "within", places(d.grep(t, g)), "b/c.md:1:3")

		g = find(t, "pump")
		g.Before, g.Behind = 2, 1
		var around []string
		for _, m := range d.grep(t, g).Matches[:3] {
			around = append(around, strings.Join(m.Before, ",")+"|"+m.Text+"|"+strings.Join(m.After, ","))
		}
		want(t, "around", around, []string{"one|two pump|three", "two pump,three|pump four pump|", ",five|six pump|"})

		g = find(t, "pump")
		g.Behind, g.MaxMatches = 2, 2
		found = d.grep(t, g)
		want(t, "limit", fmt.Sprintln(places(found), found.Truncated, found.Searched), "a.log:2:5 a.log:4:1 true 1\n")
		want(t, "the lines after the last one", found.Matches[1].After, []string{"", "five"})
		g = find(t, "pump")
		g.MaxMatches = 4
		want(t, "just the limit", d.grep(t, g).Truncated, false)
		g.MaxBytes = 9
		found = d.grep(t, g)
		want(t, "bytes", fmt.Sprint(len(found.Matches), found.Truncated), "2 true")
		want(t, "nothing", places(d.grep(t, find(t, "no such line"))), "")
	})
}

func TestLongLinesAreCut(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for at, line := range []string{
			strings.Repeat("ä", 400) + "needle" + strings.Repeat("ö", 400),
			"needle" + strings.Repeat("x", 2000),
			strings.Repeat("x", 2000) + "needle",
			strings.Repeat("日本", 20_000) + "needle" + strings.Repeat("語", 20_000),
		} {
			path := fmt.Sprint("f", at)
			d.put(t, path, line)
			g := find(t, "needle")
			g.Prefix = path
			found := d.grep(t, g)
			text := found.Matches[0].Text
			want(t, path, strings.Contains(text, "needle") && utf8.ValidString(text) && len(text) <= 510, true)
			want(t, path+" column", found.Matches[0].Column, utf8.RuneCountInString(strings.SplitN(line, "needle", 2)[0])+1)
			want(t, path+" truncated", found.Truncated, false)
		}
		d.put(t, "huge", strings.Repeat("x", 3<<20)+"needle\nneedle")
		g := find(t, "needle")
		g.Prefix = "huge"
		found := d.grep(t, g)
		want(t, "what lies beyond a MiB", fmt.Sprintln(places(found), found.Truncated), "huge:2:1 true\n")
	})
}

// ending is a context whose time is over once it was asked so often.
type ending struct {
	context.Context
	left atomic.Int64
}

func (e *ending) Err() error {
	if e.left.Add(-1) < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

// No pattern keeps a search from ending with its time, in a long line either.
func TestASearchEndsInTime(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		d.put(t, "f", "needle\n"+strings.Repeat("a", 1<<20)+"needle")
		for _, pattern := range []string{"needle|(?:a?){100}[b]", "needle|(a+a+)+b", "needle|(.{0,100}x)", "needle"} {
			ctx := &ending{Context: t.Context()}
			ctx.left.Store(100) // in the middle of the second line
			found, err := d.Grep(ctx, find(t, pattern))
			if err != nil {
				t.Fatalf("%s: %v", pattern, err)
			}
			want(t, pattern, fmt.Sprintln(places(found), found.Truncated), "f:1:1 true\n")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := d.Grep(ctx, find(t, "a")); !errors.Is(err, context.Canceled) {
			t.Errorf("a search whose caller gave up gives %v", err)
		}
	})
}
