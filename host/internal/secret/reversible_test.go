package secret

import (
	"context"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/expr"
)

type scope map[string]any

func (s scope) Lookup(name string) (any, bool) { v, ok := s[name]; return v, ok }

// A filter of a workflow must not unmask a secret.
func TestFiltersDoNotUnmask(t *testing.T) {
	t.Parallel()
	secrets := []string{
		"s3cr3t-Key", "Passw0rd", "p@ss w0rd&Key/é~", `a"b'c<d>e\f`, "Straße-Köln-42", "100%25abc+d", "ABCDEF-abcdef", "two words Here",
		"line one of it\nLine Two of it", "ıİi-secret", "key=Value&x=<y>", "tab\tand\x01control",
	}
	filters := []string{
		"upper", "lower", "title", "capitalize", "reverse", "escape", "e", "forceescape", "urlencode", "b64encode", "tojson", "json",
		"pprint", "string", "safe", "trim", "center(200)", "indent(2)", "e | e", "tojson | e", "urlize", "upper | tojson", "reverse | tojson",
		"e | tojson", "title | urlencode", "lower | e",
	}
	shapes := []string{"{{ secret | %s }}", "{{ ('x' ~ secret ~ 'x') | %s }}", "{{ ('a ' ~ secret ~ ' z') | %s }}", "{{ secret.swapcase() | %s }}"}
	for _, text := range secrets {
		s := New(map[string]any{"k": text}, nil)
		for _, filter := range filters {
			for _, shape := range shapes {
				if strings.Contains(shape, "swapcase") && filter != "string" {
					continue
				}
				tmpl, err := expr.Compile(strings.ReplaceAll(shape, "%s", filter))
				if err != nil {
					t.Fatal(err)
				}
				v, err := tmpl.Eval(context.Background(), scope{"secret": text})
				if err != nil {
					t.Fatal(err)
				}
				out := v.(string)
				if masked := s.Text(out); !strings.Contains(masked, Mask) {
					t.Errorf("%q: %s makes %q, which is masked as %q", text, filter, out, masked)
				}
				back, err := s.Unseal(s.Seal(out))
				if err != nil || back != out {
					t.Errorf("%q: %s: a checkpoint returns %q, %v instead of %q", text, filter, back, err, out)
				}
			}
		}
	}
}

// Values that are too short must not be masked inside words.
func TestShortSecrets(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"a": "k", "pin": int64(12), "long": "s3cr3t-Key", "empty": "", "deep": map[string]any{"x": "abc"}}, nil)
	if got, want := s.Text("lookup abcd 12"), "lookup abcd 12"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := strings.Join(s.Short(), " "), "a deep.x pin"; got != want {
		t.Errorf("the short secrets are %q, want %q", got, want)
	}
}
