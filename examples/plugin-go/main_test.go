package main

import (
	"testing"

	"github.com/the-edge-agent/tea/sdk/teatest"
)

func TestConformance(t *testing.T) {
	teatest.Conformance(t, bundle, teatest.Request{Action: "text.count", Params: params{Text: "to be or not"}})
}

func TestCount(t *testing.T) {
	for text, want := range map[string]int64{"": 0, "one": 1, " two\nwords ": 2} {
		got, err := teatest.Call(t, bundle, teatest.Request{Action: "text.count", Params: params{Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		if n := got.(map[string]any)["words"]; n != want {
			t.Errorf("%q has %v words, want %d", text, n, want)
		}
	}
}
