package chat

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A turn goes back to its provider in its order, through JSON, and to no other.
func TestItemsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	first, second := &ToolCall{ID: "1", Name: "a", Arguments: "{}"}, &ToolCall{ID: "2", Name: "b", Arguments: "{}"}
	for name, items := range map[string][]Item{
		"reasoning before a text and calls": {{Own: map[string]any{"type": "thinking"}}, {Text: "hi"}, {Call: first}, {Call: second}},
		"reasoning between calls":           {{Call: first}, {Own: map[string]any{"type": "thinking"}}, {Call: second}},
		"several texts":                     {{Text: "a"}, {Own: map[string]any{"x": "y"}}, {Text: "b", Own: map[string]any{"phase": "z"}}},
		"a signed call":                     {{Text: "a"}, {Call: first, Own: map[string]any{"signature": "s"}}},
	} {
		var a Answer
		for _, item := range items {
			a.Text += item.Text
		}
		a.KeepItems("p", items)
		raw, err := json.Marshal(a.Message())
		if err != nil {
			t.Fatal(err)
		}
		var m Message
		if err := json.Unmarshal(raw, &m); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(items, m.Items("p")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, item := range append(m.Items("q"), m.Bare().Items("p")...) {
			if item.Own != nil {
				t.Errorf("%s: another provider gets %v", name, item.Own)
			}
		}
		if len(m.Dialect()) != 0 {
			t.Errorf("%s: a server of the dialects gets %v", name, m.Dialect())
		}
		m.ToolCalls = append(m.ToolCalls, ToolCall{ID: "3"})
		if got := m.Items("p"); got[len(got)-1].Call.ID != "3" || got[0].Own != nil {
			t.Errorf("%s: changed since: %v", name, got)
		}
	}
	for _, turn := range []any{nil, "x", map[string]any{"provider": "p", "items": []any{1, nil, map[string]any{"call": true}}}, map[string]any{"provider": "p", "items": "x"}} {
		m := Text("assistant", "hi")
		m.Extra = map[string]any{"turn": turn, "reasoning": "r"}
		if diff := cmp.Diff([]Item{{Text: "hi"}}, m.Items("p")); diff != "" {
			t.Errorf("%v: %s", turn, diff)
		}
	}
}

func TestCallIDsThatStrictServersAccept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for id, same := range map[string]bool{"call_1": true, "toolu_01-A": true, "": false, "f.a:0": false, "é": false, long: false} {
		got := CallID(id)
		if (got == id) != same || got != CallID(id) || len(got) > 64 {
			t.Errorf("%q: %q", id, got)
		}
	}
}

func TestFilesInMessages(t *testing.T) {
	t.Parallel()
	const pdf, text = "data:application/pdf;base64,eA==", "data:text/plain;base64,eA=="
	for in, want := range map[string]Part{
		`{"type":"file","data":"eA=="}`:                                              {File: pdf},
		`{"type":"file","data":"eA==","media_type":"text/plain","filename":"a.txt"}`: {File: text, Name: "a.txt"},
		`{"type":"file","file":{"filename":"a.pdf","file_data":"` + pdf + `"}}`:      {File: pdf, Name: "a.pdf"},
		`{"type":"input_file","file_url":"https://x/a.pdf"}`:                         {File: "https://x/a.pdf"},
		`{"type":"document","url":"https://x/a.pdf"}`:                                {File: "https://x/a.pdf"},
		`{"data":"eA==","media_type":"application/pdf"}`:                             {File: pdf},
		`{"data":"eA=="}`: {Image: "data:image/png;base64,eA=="},
		`{"type":"image_url","image_url":{"url":"https://x/a.png"}}`: {Image: "https://x/a.png"},
	} {
		var c Content
		if err := json.Unmarshal([]byte(in), &c); err != nil || len(c) != 1 || c[0] != want {
			t.Errorf("%s: %v, %v", in, c, err)
			continue
		}
		raw, err := json.Marshal(c)
		var again Content
		if err := errors.Join(err, json.Unmarshal(raw, &again)); err != nil || again[0].File != c[0].File || again[0].Image != c[0].Image {
			t.Errorf("%s: again %v, %v", in, again, err)
		}
	}
}
