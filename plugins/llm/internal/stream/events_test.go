package stream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readEvents(t testing.TB, r io.Reader) (events []string, err error) {
	t.Helper()
	in := NewEvents(r, testLimit)
	for {
		e, err := in.Next()
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e.Name+"|"+string(e.Data))
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"LF", "data: a\n\ndata: b\n\n", []string{"|a", "|b"}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"|a", "|b"}},
		{"CR", "data: a\r\rdata: b\r\r", []string{"|a", "|b"}},
		{"no space behind the colon", "data:a\n\n", []string{"|a"}},
		{"only one space goes", "data:  a\n\n", []string{"| a"}},
		{"several data lines", "data: a\ndata: b\n\n", []string{"|a\nb"}},
		{"named", "event: error\ndata: a\n\ndata: b\n\n", []string{"error|a", "|b"}},
		{"a name without data is dropped", "event: ping\n\ndata: b\n\n", []string{"|b"}},
		{"keep-alive comments", ": keep-alive\n\n:\n\ndata: a\n: keep-alive\n\n", []string{"|a"}},
		{"unknown fields", "id: 7\nretry: 10\ndata: a\n\n", []string{"|a"}},
		{"no empty line at the end", "data: a\n\ndata: b", []string{"|a", "|b"}},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", []string{"|a"}},
		{"bare JSON", `{"error":"x"}`, []string{`|{"error":"x"}`}},
		{"bare JSON behind an open event", "data: a\n{\"error\":1}\ndata: b\n\n", []string{"|a", `|{"error":1}`, "|b"}},
		{"bare JSON over several lines", "{\n  \"error\": {\n    \"code\": 1\n  }\n}\ndata: b\n\n", []string{"|{\n  \"error\": {\n    \"code\": 1\n  }\n}", "|b"}},
		{"a bare list", "[{\n\"error\": 1}\n]\n", []string{"|[{\n\"error\": 1}\n]"}},
		{"bare JSON that never ends", "{\"a\":\n\ndata: b\n\n", []string{"|{\"a\":\n\ndata: b\n"}},
		{"brackets in bare JSON's texts", "{\"a\": \"}\\\"}\",\n\"b\": 1}\ndata: b\n\n", []string{"|{\"a\": \"}\\\"}\",\n\"b\": 1}", "|b"}},
		{"a bare end", "data: a\n\n[DONE]\ndata: b\n\n", []string{"|a", "|[DONE]", "|b"}},
		{"error as a field", "error: {\"code\":1}\n\n", []string{"error|{\"code\":1}"}},
		{"empty data", "data:\n\n", []string{"|"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"whole": strings.NewReader(c.in), "byte by byte": iotest.OneByteReader(strings.NewReader(c.in)),
			} {
				got, err := readEvents(t, r)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

// What a server sends must not cost more than the reading of it, however it
// is cut into lines.
func BenchmarkBareJSON(b *testing.B) {
	text := "[\n" + strings.Repeat("{},\n", 200_000) + "{}]\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := NewEvents(strings.NewReader(text), testLimit).Next(); err != nil {
			b.Fatal(err)
		}
	}
}

// An event must be there as soon as its last byte is, not when the next
// event begins.
func TestEventIsReturnedImmediately(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"\n\n", "\r\n\r\n", "\r\r"} {
		r, w := io.Pipe()
		in := NewEvents(r, testLimit)
		go io.WriteString(w, "data: a"+end)
		e, err := in.Next() // would block where it waits for more
		if err != nil || string(e.Data) != "a" {
			t.Errorf("%q: got %q, %v", end, e.Data, err)
		}
		w.Close()
	}
}

func TestEventsRefuseEndlessRecords(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]io.Reader{
		"line": io.MultiReader(strings.NewReader("data: "), endless(strings.Repeat("a", 4096))),
		"data": endless("data: " + strings.Repeat("a", 1<<20) + "\n"),
	} {
		if _, err := readEvents(t, r); !errors.Is(err, ErrTooLong) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// endless repeats a text endlessly.
type endless string

func (e endless) Read(p []byte) (int, error) {
	n := copy(p, e)
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

func TestErrorsOfTheReaderAreReturned(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	r := io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken))
	got, err := readEvents(t, r)
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if diff := cmp.Diff([]string{"|a"}, got); diff != "" {
		t.Error(diff)
	}
}

func FuzzEvents(f *testing.F) {
	for _, seed := range []string{"data: a\n\n", "event: e\r\ndata: a\r\n\r\n", ":c\rdata\r\r", "{\n{", "data: \xe2\x82\n\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		whole, err := readEvents(t, strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := readEvents(t, iotest.OneByteReader(strings.NewReader(in)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("the size of the pieces changes the events: %s", diff)
		}
	})
}
