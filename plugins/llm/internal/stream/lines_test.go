package stream

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func readLines(r io.Reader) (lines []string, err error) {
	in := NewLines(r, testLimit)
	for {
		line, err := in.Next()
		if err == io.EOF {
			return lines, nil
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, string(line))
	}
}

// testLimit is the largest record of these tests.
const testLimit = 16 << 20

func TestLines(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"LF", "{}\n[]\n", []string{"{}", "[]"}},
		{"CRLF", "{}\r\n[]\r\n", []string{"{}", "[]"}},
		{"no end", "{}\n[]", []string{"{}", "[]"}},
		{"empty lines", "\n\n{}\n \n[]\n\n", []string{"{}", "[]"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := readLines(iotest.OneByteReader(strings.NewReader(c.in)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := readLines(endless(strings.Repeat("a", 4096))); !errors.Is(err, ErrTooLong) {
		t.Errorf("an endless line: got %v", err)
	}
}

func FuzzLines(f *testing.F) {
	f.Add("{}\n{}\r\n\r{}")
	f.Fuzz(func(t *testing.T, in string) {
		whole, err := readLines(strings.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		pieces, _ := readLines(iotest.OneByteReader(strings.NewReader(in)))
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Errorf("the size of the pieces changes the lines: %s", diff)
		}
	})
}
