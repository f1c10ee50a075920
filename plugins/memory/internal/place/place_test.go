package place_test

import (
	"path"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/place"
	tea "github.com/the-edge-agent/tea/sdk"
)

func TestOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		path, session string
		want          place.Place
		whole         string
	}{
		{"a", "", place.Place{Path: "a"}, "a"},
		{"./a//b/", "", place.Place{Path: "a/b"}, "a/b"},
		{"a/b", "s", place.Place{Session: "s", Path: "a/b"}, "sessions/s/a/b"},
		{"sessions/s/a/b", "", place.Place{Session: "s", Path: "a/b"}, "sessions/s/a/b"},
		{"sessions//s/./a", "s", place.Place{Session: "s", Path: "a"}, "sessions/s/a"},
		{"archive/sessions/s/a", "", place.Place{Session: "s", Path: "a", Archived: true}, "sessions/s/a"},
		{"archive/a", "", place.Place{Path: "archive/a"}, "archive/a"},
		{"archive/sessionsx/s/a", "", place.Place{Path: "archive/sessionsx/s/a"}, "archive/sessionsx/s/a"},
		{"Sessions/s/a", "", place.Place{Path: "Sessions/s/a"}, "Sessions/s/a"},
		{"sessions%2fs/a", "", place.Place{Path: "sessions%2fs/a"}, "sessions%2fs/a"},
		{"sessions", "", place.Place{Path: "sessions"}, "sessions"},
	} {
		got, err := place.Of(test.path, test.session)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%q in %q (-want +got): %v\n%s", test.path, test.session, err, diff)
		}
		if got.Whole() != test.whole {
			t.Errorf("%q in %q is %q as a whole, want %q", test.path, test.session, got.Whole(), test.whole)
		}
	}
	for _, test := range [][2]string{{"", ""}, {".", ""}, {"./", "s"}, {"sessions/s", ""}, {"sessions/s/", "s"}, {"archive/sessions/s", ""}, {"sessions/t/a", "s"}, {"archive/sessions/t/a", "s"}} {
		if got, err := place.Of(test[0], test[1]); err == nil || tea.AsError(err).Type != tea.ValidationError {
			t.Errorf("%q in %q is %+v, %v; want a validation_error", test[0], test[1], got, err)
		}
	}
}

// FuzzOf checks any path: it is refused with a reason, or leads nowhere but
// into its root, however often and by whomever it is decoded.
func FuzzOf(f *testing.F) {
	for _, given := range []string{
		"a", "a/b.md", "100%", "..", "a/../b", "%2e%2e/x", "%252e%252e%252fx", "%25252e%25252e/x", "%2525252e%2525252e/x", "/a", "~", "c:a", "file:a", "a\\b", "a%5cb", "a\x00", "a%00", "\uff0e\uff0e/a", "..%c0%af",
		"sessions/s/a", "archive/sessions/s/a", "sessions/../a", "sessions/%2e%2e/a", "x/a:b", "a. ", ". .", "%", "%%32%65", "%2%65",
	} {
		f.Add(given, "")
		f.Add(given, "s")
	}
	f.Fuzz(func(t *testing.T, given, session string) {
		at, err := place.Of(given, session)
		if err != nil {
			if e := tea.AsError(err); e.Type != tea.PermissionDenied && e.Type != tea.ValidationError {
				t.Errorf("%q gives %v", given, err)
			}
			return
		}
		if escapesRoot(at.Path) {
			t.Errorf("%q leads to %q", given, at.Path)
		}
		if !utf8.ValidString(at.Path) || strings.ContainsFunc(at.Path, unicode.IsControl) {
			t.Errorf("%q leads to %q", given, at.Path)
		}
		if session != "" && at.Session != session {
			t.Errorf("%q in %q leads to %+v", given, session, at)
		}
		if at.Session == "" && (strings.HasPrefix(at.Path, "sessions/") || strings.HasPrefix(at.Path, "archive/sessions/")) {
			t.Errorf("%q leads to the file of a session: %+v", given, at)
		}
		again, err := place.Of(at.Path, at.Session)
		if at.Session == "" && (err != nil || again != at) {
			t.Errorf("%q leads to %+v, which leads to %+v, %v", given, at, again, err)
		}
	})
}

// escapesRoot says whether somebody might be led out of the root, who takes off
// up to six layers of encoding.
func escapesRoot(p string) bool {
	for range 6 {
		if path.IsAbs(p) || !filepath.IsLocal(p) || strings.ContainsAny(p, "\\\x00") || path.Clean("/r/"+p) != path.Join("/r", path.Clean("/"+p)) {
			return true
		}
		p = decoding.Replace(p)
	}
	return false
}

var decoding = strings.NewReplacer("%2e", ".", "%2E", ".", "%2f", "/", "%2F", "/", "%5c", "\\", "%5C", "\\", "%00", "\x00", "%25", "%")
