package chat

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestContentForms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   string
		want Content
		out  string
	}{
		{`null`, nil, `""`},
		{`"hi"`, Content{{Text: "hi"}}, `"hi"`},
		{`["a",{"type":"text","text":"b"}]`, Content{{Text: "a"}, {Text: "b"}}, `"ab"`},
		{`{"type":"text","text":"a"}`, Content{{Text: "a"}}, `"a"`},
		{`[{"type":"image_url","image_url":{"url":"http://x/y.png"}}]`, Content{{Image: "http://x/y.png"}}, `[{"image_url":{"url":"http://x/y.png"},"type":"image_url"}]`},
		{`[{"type":"image_url","image_url":"http://x"}]`, Content{{Image: "http://x"}}, `[{"image_url":{"url":"http://x"},"type":"image_url"}]`},
		{
			`[{"type":"image","data":"AAAA","media_type":"image/jpeg"},"what?"]`,
			Content{{Image: "data:image/jpeg;base64,AAAA"}, {Text: "what?"}},
			`[{"image_url":{"url":"data:image/jpeg;base64,AAAA"},"type":"image_url"},{"text":"what?","type":"text"}]`,
		},
	} {
		var got Content
		if err := json.Unmarshal([]byte(c.in), &got); err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.in, diff)
		}
		if out, err := json.Marshal(got); err != nil || string(out) != c.out {
			t.Errorf("%s: written as %s, %v", c.in, out, err)
		}
	}
	for _, in := range []string{`7`, `[7]`, `[{"type":"video"}]`} {
		if err := json.Unmarshal([]byte(in), new(Content)); err == nil {
			t.Errorf("%s is not an error", in)
		}
	}
}

func TestToolCallForms(t *testing.T) {
	t.Parallel()
	want := ToolCall{ID: "c", Name: "add", Arguments: `{"x":1}`}
	for _, in := range []string{
		`{"id":"c","name":"add","arguments":{"x":1}}`,
		`{"id":"c","name":"add","arguments":"{\"x\":1}"}`,
		`{"id":"c","type":"function","function":{"name":"add","arguments":"{\"x\":1}"}}`,
		`{"id":"c","function":{"name":"add","arguments":{"x":1}}}`,
	} {
		var got ToolCall
		if err := json.Unmarshal([]byte(in), &got); err != nil || !cmp.Equal(want, got) {
			t.Errorf("%s: got %v, %v", in, got, err)
		}
	}
	for arguments, out := range map[string]string{
		`{"x":12345678901234567890}`: `{"arguments":{"x":12345678901234567890},"id":"","name":""}`,
		`{"x":`:                      `{"arguments":"{\"x\":","id":"","name":""}`,
		``:                           `{"arguments":{},"id":"","name":""}`,
	} {
		if got, err := json.Marshal(ToolCall{Arguments: arguments}); err != nil || string(got) != out {
			t.Errorf("%s: written as %s, %v", arguments, got, err)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	body := map[string]any{"a": 1, "b": 2, "options": map[string]any{"x": 1, "y": 2}}
	extra := map[string]any{"b": nil, "c": 3, "options": map[string]any{"y": 3, "z": nil}}
	Merge(body, extra)
	if diff := cmp.Diff(map[string]any{"a": 1, "c": 3, "options": map[string]any{"x": 1, "y": 3}}, body); diff != "" {
		t.Error(diff)
	}
}

// Members that a server added to a turn are members of the message, so that
// they survive a workflow's state.
func TestExtraMembersAreKept(t *testing.T) {
	t.Parallel()
	const in = `{"role":"assistant","content":"a","reasoning_content":"hm","n":9007199254740993,"refusal":null,` +
		`"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}","mark":1},"extra_content":{"google":{"thought_signature":"s"}}}]}`
	var m Message
	if err := json.Unmarshal([]byte(in), &m); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"content":"a","n":9007199254740993,"reasoning_content":"hm","role":"assistant",` +
		`"tool_calls":[{"arguments":{},"extra_content":{"google":{"thought_signature":"s"}},"function":{"mark":1},"id":"c","name":"f"}]}`
	if string(out) != want {
		t.Errorf("written as %s", out)
	}
	var again Message
	if err := json.Unmarshal(out, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m, again); diff != "" {
		t.Error(diff)
	}
	bare, err := json.Marshal(again.Bare())
	if want := `{"role":"assistant","content":"a","tool_calls":[{"arguments":{},"id":"c","name":"f"}]}`; err != nil || string(bare) != want {
		t.Errorf("bare: %s, %v", bare, err)
	}
}
