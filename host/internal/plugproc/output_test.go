package plugproc

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	tea "github.com/the-edge-agent/tea/sdk"
)

// readAll runs text through an output and gives what was logged.
func readAll(text string) (*output, string) {
	var log bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	o := &output{logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: plain}))}
	o.read("stderr", bufio.NewReader(strings.NewReader(text)))
	return o, log.String()
}

func TestOutputBecomesLogRecords(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"plain", "hello\r\n", `level=INFO msg=hello stream=stderr`},
		{"no newline at the end", "hello", `level=INFO msg=hello stream=stderr`},
		{"record", `{"@level":"warn","@message":"low","@timestamp":"x","left":3}` + "\n", `level=WARN msg=low left=3`},
		{"trace", `{"@level":"trace","@message":"m"}` + "\n", `level=DEBUG msg=m`},
		{"unknown level", `{"@level":"loud","@message":"m"}` + "\n", `level=INFO msg=m`},
		{"other JSON", `{"a":1}` + "\n", `level=INFO msg="{\"a\":1}" stream=stderr`},
		{"half a record", `{"@level":"warn"` + "\n", `level=INFO msg="{\"@level\":\"warn\"" stream=stderr`},
		{"invalid UTF-8", "a\xffb\n", "level=INFO msg=\"a\ufffdb\" stream=stderr"},
		{"empty lines", "\n\n", ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, got := readAll(c.text); strings.TrimSpace(got) != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestLastWordsAreBounded(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 2000 {
		fmt.Fprintln(&many, "line", i)
	}
	var trace strings.Builder
	for i := range 100 {
		fmt.Fprintln(&trace, "frame", i)
	}
	for _, c := range []struct{ name, text, first, last string }{
		{"many lines", many.String(), "line 1980", "line 1999"},
		{"long line", strings.Repeat("x", 1<<20) + "\nend\n", "end", "end"},
		{"panic", many.String() + "panic: no\n" + trace.String(), "panic: no", "frame 18"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			o, log := readAll(c.text)
			lines := strings.Split(o.lastWords(), "\n")
			if diff := cmp.Diff([]string{c.first, c.last}, []string{lines[0], lines[len(lines)-1]}); diff != "" {
				t.Error(diff)
			}
			// The clock may turn to the next second on the way.
			if n := strings.Count(log, "\n"); n > 2*linesPerSecond+1 {
				t.Errorf("%d records were logged", n)
			}
		})
	}
}

func TestLastWordsNoteIsTheTellingLine(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"":                         "; it wrote nothing",
		"first\nsecond":            "; its last words: second",
		"panic: boom\ngoroutine 1": "; its last words: panic: boom",
	} {
		if got := lastWordsNote(words); got != want {
			t.Errorf("%q gives %q, want %q", words, got, want)
		}
	}
}

func FuzzOutput(f *testing.F) {
	for _, text := range []string{"1|1|unix|/s|grpc|", `{"@level":"info","@message":"m","a":[1]}`, "panic: x\n", "\xff\x00\n", `{"@level":1}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, _ := readAll(text)
		if words := o.lastWords(); len(words) > keptBytes+maxLine+keptLines {
			t.Errorf("%d bytes are kept", len(words))
		}
		if e := checkHandshake("x", text); e != nil && e.Type != tea.InternalError && e.Type != tea.DependencyMissing {
			t.Errorf("a wrong handshake is %s", e.Type)
		}
	})
}

func TestLineInPiecesIsOneRecord(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	o := &output{logger: slog.New(slog.NewTextHandler(&log, nil))}
	w := o.writer("stderr")
	for _, piece := range []string{"the key is TOPSEC", "RETVALUE, two\nnext", " line\nlast wo", "rds"} {
		if _, err := io.WriteString(w, piece); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{`msg="the key is TOPSECRETVALUE, two"`, `msg="next line"`} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %s in:\n%s", want, &log)
		}
	}
	if want := "the key is TOPSECRETVALUE, two\nnext line\nlast words"; o.lastWords() != want {
		t.Errorf("last words: %q", o.lastWords())
	}
}
