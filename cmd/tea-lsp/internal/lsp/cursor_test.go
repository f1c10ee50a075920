package lsp

import (
	"fmt"
	"strings"
	"testing"
)

// The cursor is at the character |.
func TestCursor(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ text, want string }{
		{"|", "[] key= "},
		{"na|", "[] key= "},
		{"name: |", "[] key=name name="},
		{"nodes:\n  - na|", "[nodes -] key= "},
		{"nodes:\n  - name: a\n    us|", "[nodes -] key= name=a"},
		{"nodes:\n- name: a\n  uses: |\n  if: x\n- name: b", "[nodes -] key=uses if=x name=a uses="},
		{"nodes:\n  - name: a\n    uses: http.get\n    with:\n      u|", "[nodes - with] key= "},
		{"nodes:\n  a:\n    goto: |", "[nodes a] key=goto goto="},
		{"nodes:\n  - {name: a, uses: |, if: x}", "[nodes -] key=uses if=x name=a uses="},
		{"nodes:\n  - {name: a, uses: http.get, with: {ur|", "[nodes - with] key= "},
		{"nodes:\n  - {name: a, with: {url: \"a, b|\"}}", "[nodes - with] key=url url=a, b"},
		{"nodes:\n  - name: a\n    with: {url: |}", "[nodes - with] key=url url="},
		{"edges:\n  - {from: a, to: [b, |]}", "[edges - to -] key= "},
		{"edges:\n  - from: a\n    to:\n      - |", "[edges - to -] key= "},
		{"nodes:\n  - name: a\n    goto:\n      - if: x\n        to: |\n  - name: b", "[nodes - goto -] key=to if=x to="},
		{"nodes:\n  - name: a\n    run: |-\n      local x: = 1\n      return st|", "[nodes -] key=run block name=a run=|-"},
		{"nodes:\n  - name: a\n\n    |\n", "[nodes -] key= name=a"},
		{"nodes:\n  - name: l\n    type: while_loop\n    body:\n      - name: i\n        goto: |", "[nodes - body -] key=goto goto= name=i"},
		{"a: {b: [\n|", "[] key= a={b= ["},
	} {
		at := strings.LastIndex(test.text, "|")
		c := cursorAt(newDocument("file:///x", 1, test.text[:at]+test.text[at+1:]), at)
		got := fmt.Sprintf("%v key=%s ", c.path(), c.key)
		if c.block {
			got += "block "
		}
		got += strings.ReplaceAll(strings.TrimSuffix(strings.TrimPrefix(fmt.Sprint(c.siblings), "map["), "]"), ":", "=")
		if got != test.want {
			t.Errorf("%q:\n got %s\nwant %s", test.text, got, test.want)
		}
	}
}
