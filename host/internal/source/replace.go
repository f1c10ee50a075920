package source

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
)

// older lists what the parser treats as in YAML 1.1: characters that it takes for line
// ends, and an escape that it does not support.
var older = []string{"\u0085", "\u2028", "\u2029", `\/`}

// replaceForParser replaces text that the parser does not read as YAML 1.2 by the same number of
// private-use characters that data does not contain. restore puts the original text
// back into the parsed nodes; it is nil if nothing was replaced.
func replaceForParser(data []byte) (replaced []byte, restore func(*yaml.Node)) {
	var there, back, inQuotes []string // pairs for replacers
	next := rune(0xe000)
	standIn := func() string {
		for bytes.ContainsRune(data, next) {
			next++
		}
		next++
		return string(next - 1)
	}
	for _, text := range older {
		if !bytes.Contains(data, []byte(text)) {
			continue
		}
		if text == `\/` {
			backslash, slash := standIn(), standIn()
			there = append(there, `\\`, `\\`, text, backslash+slash)
			back = append(back, backslash, `\`, slash, "/")
			inQuotes = append(inQuotes, backslash, "", slash, "/")
			continue
		}
		s := standIn()
		there, back, inQuotes = append(there, text, s), append(back, s, text), append(inQuotes, s, text)
	}
	if there == nil {
		return data, nil
	}
	plain, quoted := strings.NewReplacer(back...), strings.NewReplacer(inQuotes...)
	restore = func(n *yaml.Node) {
		n.Anchor, n.Tag = plain.Replace(n.Anchor), plain.Replace(n.Tag)
		if n.Style&yaml.DoubleQuotedStyle != 0 {
			n.Value = quoted.Replace(n.Value)
		} else {
			n.Value = plain.Replace(n.Value)
		}
		for _, inner := range n.Content {
			restore(inner)
		}
	}
	return []byte(strings.NewReplacer(there...).Replace(string(data))), restore
}
