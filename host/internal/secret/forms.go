package secret

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/sdk/value"
)

// form is a secret as it looks somewhere. What it is called stands in
// checkpoints and keeps its meaning for ever; as it is, it has no name.
type form struct{ as, text string }

// forms are the texts by which a secret is known in output: as it is, and as
// it looks inside of JSON, an error message, a URL, Base64 and hexadecimal
// digits. Of equal ones the first is there.
func forms(text string) []form {
	unquoted := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	inner := unquoted(string(value.AppendString(nil, text)))
	query := url.QueryEscape(text)
	component := strings.ReplaceAll(query, "+", "%20")
	list := []form{
		{"", text},
		{"json", inner},
		{"quoted", unquoted(strconv.Quote(text))},
		{"html json", strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(inner)},
		{"query", query},
		{"component", component},
		{"segment", url.PathEscape(text)},
		{"path", strings.ReplaceAll(component, "%2F", "/")},
		{"hex", hex.EncodeToString([]byte(text))},
		{"HEX", strings.ToUpper(hex.EncodeToString([]byte(text)))},
	}
	list = append(list, base64Forms("base64", base64.RawStdEncoding, text)...)
	list = append(list, base64Forms("base64url", base64.RawURLEncoding, text)...)
	seen := make(map[string]bool)
	return slices.DeleteFunc(list, func(f form) bool {
		again := seen[f.text]
		seen[f.text] = true
		return again
	})
}

// base64Forms are the secret in Base64, alone and as a part of something
// longer: with zero, one or two bytes before it in its first group of three.
// Of a part only the characters count that no neighbour has a share in.
func base64Forms(name string, encoding *base64.Encoding, text string) []form {
	whole := encoding.EncodeToString([]byte(text))
	list := []form{{name + " padded", whole + strings.Repeat("=", -len(whole)&3)}, {name, whole}}
	for before := range 3 {
		part := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
		start := []int{0, 2, 3}[before]
		end := (before + len(text)) * 8 / 6
		if end-start >= minPart {
			list = append(list, form{name + " " + strconv.Itoa(before), part[start:end]})
		}
	}
	return list
}

// minPart is the length from which a part of a Base64 text is taken for a
// secret's.
const minPart = 8
