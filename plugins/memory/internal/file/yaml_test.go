package file_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/sdk/value"
)

func TestDecodeYAML(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "[]",
		"a: 1\nb: [x, 0.5, yes, null, ~]\n": `[{"a": 1, "b": ["x", 0.5, "yes", null, null]}]`,
		"# c\n---\na: true\n---\n- 18446744073709551615\n":              `[{"a": true}, [18446744073709551615]]`,
		"day: 2026-03-01\n1: one\n.nan: .inf\n":                         `[{"day": "2026-03-01", "1": "one", ".nan": ".inf"}]`,
		"base: &b {x: 1, y: 2}\nmore:\n  <<: *b\n  y: 3\n":              `[{"base": {"x": 1, "y": 2}, "more": {"x": 1, "y": 3}}]`,
		"text: |\n  two\n  lines\nempty:\nquoted: '007'\noctal: 0o17\n": `[{"text": "two\nlines\n", "empty": null, "quoted": "007", "octal": 15}]`,
		"list: &l [1]\nagain: [*l, *l]":                                 `[{"list": [1], "again": [[1], [1]]}]`,
	} {
		docs, err := file.DecodeYAML(strings.NewReader(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		got := []any{}
		for _, d := range docs {
			got = append(got, d.Value)
		}
		wanted, err := value.Decode([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if !value.Equal(got, wanted) {
			t.Errorf("%q (-want +got):\n%s", text, cmp.Diff(wanted, any(got)))
		}
	}
	bomb := "a0: &a0 [x, x]\n"
	for i := range 30 {
		bomb += strings.NewReplacer("1", string(rune('A'+i)), "0", string(rune('A'+i-1))).Replace("x1: &y1 [*y0, *y0]\n")
	}
	bomb = strings.Replace(bomb, "*y@", "*a0", 2)
	for _, text := range []string{"a: [", "? [a]\n: b", bomb, "a: *none"} {
		if docs, err := file.DecodeYAML(strings.NewReader(text)); err == nil {
			t.Errorf("%.40q is read as %.100v", text, docs)
		}
	}
}
