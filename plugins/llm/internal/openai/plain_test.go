package openai

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlainChunkIsReadAsAnyOther(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		chunk string
		plain bool
	}{
		{`{"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":" a\u00fc\n"},"finish_reason":null}]}`, true},
		{`{"model":"m","usage":null,"choices":[{"index":0,"delta":{"role":"assistant","content":null,"refusal":null,"tool_calls":null},"logprobs":null}]}`, true},
		{`{"choices":[{"delta":{},"finish_reason":"stop"}]}`, true},
		{`{"choices":[{"delta":{"content":""}}]}`, true},
		{`{"choices":[{"index":"0","delta":{"content":"a"}}]}`, false},
		{`{"choices":[{"index":1,"delta":{"content":"a"}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"content":[{"type":"text","text":"a"}]}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"content":"a","reasoning_content":null}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"reasoning":"a"}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"content":"a","annotations":[]}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"content":"a"},"message":{"content":"ab"}}]}`, false},
		{`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":7}]}`, false},
		{`{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"null"}]}`, false},
		{`{"choices":[{"index":0,"delta":null}]}`, false},
		{`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`, false},
		{`{"choices":[{"delta":{"content":"a"}}],"usage":{"total_tokens":3}}`, false},
		{`{"Choices":[{"Delta":{"content":"a"}}]}`, false},
	} {
		got := plainChunk([]byte(c.chunk))
		if (got != nil) != c.plain {
			t.Errorf("%s: plain is %t", c.chunk, got != nil)
		}
		want, err := decodeAny([]byte(c.chunk))
		if err != nil {
			t.Fatalf("%s: %v", c.chunk, err)
		}
		if got == nil {
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(piece{}, content{})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.chunk, diff)
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	chunk := []byte(`{"id":"1","object":"chat.completion.chunk","created":1,"model":"bench","choices":[{"index":0,"delta":{"content":" token7"},"finish_reason":null}]}`)
	for name, read := range map[string]func([]byte) (*completion, error){"any": decodeAny, "plain": decode} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(chunk); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
