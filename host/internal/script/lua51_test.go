package script_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/script"
)

// answers51 returns code with the answers of Lua 5.1, which testdata/lua51.lua
// writes.
func answers51(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/lua51.txt")
	if err != nil {
		t.Fatal(err)
	}
	answers := map[string]string{}
	for line := range strings.Lines(string(data)) {
		code, answer, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		answers[code] = answer
	}
	return answers
}

// answer returns what code does here, as testdata/lua51.lua writes it.
func answer(t *testing.T, rt *script.Runtime, show, code string) string {
	t.Helper()
	for _, body := range []string{"return " + code, code} {
		chunk, err := rt.Compile(script.Source{Name: "t", Text: show + "\nreturn show(pcall(function() " + body + "\nend))"})
		if err != nil {
			continue
		}
		v, err := chunk.Run(t.Context(), script.Env{})
		if err != nil {
			return "error"
		}
		return v.(string)
	}
	return "error"
}

// rows51 returns the rows of the table "Lua here and Lua 5.1" of the guide: code,
// the answer of Lua 5.1, and the one here.
func rows51(t *testing.T) map[string][2]string {
	t.Helper()
	page, err := os.ReadFile("../../../docs/guide/lua.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Differences from Lua 5.1\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string][2]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*?)` \\| `(.*?)` \\| `(.*?)` \\|").FindAllStringSubmatch(section, -1) {
		for i := range m {
			m[i] = strings.ReplaceAll(m[i], `\|`, "|")
		}
		rows[m[1]] = [2]string{m[2], m[3]}
	}
	return rows
}

func TestLua51(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("testdata/lua51.lua")
	if err != nil {
		t.Fatal(err)
	}
	rt := script.New(script.Options{})
	rows, answers := rows51(t), answers51(t)
	for code, want := range answers {
		row, differs := rows[code]
		if differs && row[0] != want {
			t.Errorf("%s: Lua 5.1 answers %s, the guide says %s", code, want, row[0])
		}
		if differs {
			want = row[1]
		}
		if got := answer(t, rt, string(source), code); got != want {
			t.Errorf("%s: %s, want %s", code, got, want)
		}
	}
	for code := range rows {
		if _, ok := answers[code]; !ok {
			t.Errorf("%s is not in testdata/lua51.txt", code)
		}
	}
	if len(rows) < 10 || len(answers) < 300 {
		t.Errorf("only %d rows, %d answers", len(rows), len(answers))
	}
}
