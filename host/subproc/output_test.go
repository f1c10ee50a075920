package subproc

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
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// readAll runs text through an output and returns what was logged.
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

func TestLastOutputIsBounded(t *testing.T) {
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
			lines := strings.Split(o.lastOutput(), "\n")
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

func TestLastOutputNoteIsTheRelevantLine(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]string{
		"":                         "; it wrote nothing",
		"first\nsecond":            "; last output: second",
		"panic: boom\ngoroutine 1": "; last output: panic: boom",
		"panic: boom [recovered]\ngoroutine 7 [running]:\npanic({0x1, 0x2})\n\t/go/panic.go:1 +0x1\nexample.com/mail/v2.(*client).send(0x0)\n\t/src/mail/client.go:42 +0x1d\nmain.main()\n\t/src/main.go:7": "; last output: panic: boom [recovered], in v2.(*client).send (client.go:42)",
		"SIGSEGV: segmentation violation\nPC=0x1 m=0\ngoroutine 1 [syscall]:\nruntime.cgocall(0x1)\n\t/go/cgo.go:1\nmain.query()\n\t/src/main.go:9 +0x1":                                                    "; last output: SIGSEGV: segmentation violation, in main.query (main.go:9)",
		"thread 'main' panicked at src/main.rs:2:5:\nno disk\nnote: run with RUST_BACKTRACE=1":                                                                                                              "; last output: thread 'main' panicked at src/main.rs:2:5: no disk",
		"/a.js:1\nthrow new Error('x')\n^\nTypeError: x is not a function\n    at a.js:1\nNode.js v20.1.0":                                                                                                  "; last output: TypeError: x is not a function",
		"Traceback (most recent call last):\n  File \"a.py\"\nValueError: bad":                                                                                                                              "; last output: ValueError: bad",
	} {
		if got := lastOutputNote(words); got != want {
			t.Errorf("%q gives %q, want %q", words, got, want)
		}
	}
}

func TestRegistersAreNotInTheLastOutput(t *testing.T) {
	t.Parallel()
	o, _ := readAll("before\nfatal error: stack overflow\n\nruntime stack:\nruntime.throw(0x1)\n\t/go/panic.go:1\n\ngoroutine 1 [running]:\nmain.f()\n\t/src/main.go:3\n\nrax    0x0\nrflags 0x246\n")
	want := "fatal error: stack overflow\ngoroutine 1 [running]:\nmain.f()\n\t/src/main.go:3"
	if diff := cmp.Diff(want, o.lastOutput()); diff != "" {
		t.Error(diff)
	}
}

func FuzzOutput(f *testing.F) {
	for _, text := range []string{"1|1|unix|/s|grpc|", `{"@level":"info","@message":"m","a":[1]}`, "panic: x\n", "\xff\x00\n", `{"@level":1}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, _ := readAll(text)
		if words := o.lastOutput(); len(words) > keptBytes+maxLine+keptLines {
			t.Errorf("%d bytes are kept", len(words))
		}
		if e := wire.CheckHandshake(text); e != nil && e.Type != tea.InternalError && e.Type != tea.DependencyMissing {
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
	if want := "the key is TOPSECRETVALUE, two\nnext line\nlast words"; o.lastOutput() != want {
		t.Errorf("last words: %q", o.lastOutput())
	}
}
