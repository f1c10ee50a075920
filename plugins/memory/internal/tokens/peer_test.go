package tokens_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/plugins/memory/internal/tokens"
	"github.com/the-edge-agent/tea/sdk/x/peertest"
)

// fragments are parts of texts in ten languages and of code, and what separates them.
var fragments = map[string][]string{
	"English":    {"the pump's", "pressure", "doesn't", "DON'T", "they'LL", "rise", "above", "4.75", "bar", "."},
	"German":     {"Überdruck", "Ventil", "schließt", "größer", "geht's", "Maßnahme", ",", "während"},
	"French":     {"l'eau", "dépasse", "où", "aujourd'hui", "«", "»", "été", "1 000"},
	"Portuguese": {"pressão", "não", "água", "avó", "reservatório", "às", "ção"},
	"Turkish":    {"ışık", "İstanbul", "basınç", "değişti", "şöyle"},
	"Russian":    {"давление", "выше", "нормы", "насос", "№", "ёмкость"},
	"Greek":      {"πίεση", "αντλία", "ώρα", "ς", "Ώ"},
	"Hebrew":     {"לחץ", "משאבה", "עברית", "׳"},
	"Hindi":      {"दबाव", "हिन्दी", "पंप", "१२३", "।"},
	"Chinese":    {"水泵", "压力过高", "漢字", "。", ",", "九"},
	"Japanese":   {"ポンプ", "圧力が", "高い", "です", "々"},
	"code":       {"func main() {", "}", "x := a[i]", "!=", "==", "// note", "#include <stdio.h>", "SELECT *", "0xFF", "_name", "\\n", "```go", "|---|", "https://example.org/a?b=c&d", "%2F", "{\"a\": [1, 2]}"},
	"blanks":     {" ", "/", ".\n/", "  ", "\n", "\n\n", "\r\n", "\t", "    ", " \n", "\n \n", "\u00a0", "\u2028", "\u3000"},
}

// texts returns texts in one or several languages.
func texts(n int) []string {
	random := rand.New(rand.NewPCG(7, 9))
	names := []string{"English", "German", "French", "Portuguese", "Turkish", "Russian", "Greek", "Hebrew", "Hindi", "Chinese", "Japanese", "code"}
	list := make([]string, n)
	for i := range list {
		var b strings.Builder
		name := names[i%len(names)]
		for range 1 + random.IntN(60) {
			if random.IntN(8) == 0 {
				name = names[random.IntN(len(names))]
			}
			words := fragments[name]
			b.WriteString(words[random.IntN(len(words))])
			if random.IntN(4) == 0 {
				words = fragments["blanks"]
				for range random.IntN(4) {
					b.WriteString(words[random.IntN(len(words))])
				}
			} else if random.IntN(5) > 0 {
				b.WriteByte(' ')
			}
		}
		list[i] = b.String()
	}
	return list
}

const root = "../../../.."

func TestCountsMatchJSTiktoken(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, root, "tiktoken")
	o200k, err := tokens.Load(vocabulary(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	for name, encoding := range map[string]*tokens.Encoding{"cl100k_base": nil, "o200k_base": o200k} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compare(t, dir, name, encoding)
		})
	}
}

// vocabulary writes the vocabulary of o200k_base to a file.
func vocabulary(t *testing.T, dir string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), "node", root+"/test/tiktoken/vocabulary.mjs", dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "o200k_base.tiktoken")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func compare(t *testing.T, dir, name string, encoding *tokens.Encoding) {
	t.Helper()
	list := texts(10_000)
	var in bytes.Buffer
	encoder := json.NewEncoder(&in)
	for _, text := range list {
		if err := encoder.Encode(text); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node", root+"/test/tiktoken/count.mjs", dir, name)
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	lines, at, wrong := bufio.NewScanner(bytes.NewReader(out)), 0, 0
	for ; lines.Scan() && at < len(list); at++ {
		want, err := strconv.Atoi(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		if got := encoding.Count(list[at]); got != want {
			if wrong++; wrong <= 5 {
				t.Errorf("%q has %d tokens, want %d", list[at], got, want)
			}
		}
	}
	if at != len(list) || wrong > 0 {
		t.Errorf("%d of %d counts differ", wrong+len(list)-at, len(list))
	}
}

// TestCutByO200K checks that texts are cut where js-tiktoken counts at most the limit.
func TestCutByO200K(t *testing.T) {
	t.Parallel()
	dir := peertest.Dir(t, root, "tiktoken")
	path := vocabulary(t, dir)
	encoding, err := tokens.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if head, count := encoding.Cut("दबाव हिन्दी पंप दबाव हिन्दी पंप", 6); head != "दबाव हिन्दी पंप" || count != 6 || tokens.Count(head) < 12 {
		t.Errorf("cut to %q with %d tokens", head, count)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text[:len(text)-1], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens.Load(path); err == nil || !strings.Contains(err.Error(), "is not o200k_base.tiktoken") {
		t.Errorf("a changed vocabulary: %v", err)
	}
}
