package tinymodel

import (
	"bytes"
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	t.Parallel()
	spec := Spec{Answer: "It is warm.", After: map[rune]string{'#': "Very well."}}
	file, err := spec.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(file, []byte("GGUF\x03\x00\x00\x00")) || len(file) > 1<<20 || len(file)%alignment != 0 {
		t.Errorf("%d bytes that begin with %q", len(file), file[:8])
	}
	if again, _ := spec.Encode(); !bytes.Equal(file, again) {
		t.Error("the same answers give another file")
	}
}

func TestAnswersThatDoNotFit(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]Spec{
		"no words":         {},
		"a word twice":     {Answer: "to be or not to be"},
		"twice in answers": {Answer: "it is warm", After: map[rune]string{'#': "it is"}},
	} {
		if _, err := spec.Encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	long := make([]string, 60)
	for i := range long {
		long[i] = strings.Repeat("x", i+1)
	}
	if _, err := (Spec{Answer: strings.Join(long, " ")}).Encode(); err == nil {
		t.Error("sixty words: no error")
	}
}
