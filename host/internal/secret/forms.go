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

// forms are the texts by which a secret is known in output: as it is, and as
// it looks inside of JSON, an error message, a URL, Base64 and hexadecimal digits.
func forms(text string) []string {
	unquoted := func(quoted string) string { return quoted[1 : len(quoted)-1] }
	inner := unquoted(string(value.AppendString(nil, text)))
	path := url.PathEscape(text)
	list := []string{
		text, inner, unquoted(strconv.Quote(text)), strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(inner),
		url.QueryEscape(text), strings.ReplaceAll(url.QueryEscape(text), "+", "%20"),
		path, strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), "%2F", "/"),
		hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text))),
	}
	list = append(list, base64Forms(text)...)
	slices.Sort(list)
	return slices.Compact(list)
}

// base64Forms are the secret in Base64, alone and as a part of something
// longer: with zero, one or two bytes before it in its first group of three.
// Of a part only the characters count that no neighbour has a share in.
func base64Forms(text string) []string {
	var list []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		whole := encoding.EncodeToString([]byte(text))
		list = append(list, whole+strings.Repeat("=", -len(whole)&3), whole)
		for before := range 3 {
			part := encoding.EncodeToString([]byte(strings.Repeat("\x00", before) + text))
			start := []int{0, 2, 3}[before]
			end := (before + len(text)) * 8 / 6
			if end-start >= minPart {
				list = append(list, part[start:end])
			}
		}
	}
	return list
}

// minPart is the length from which a part of a Base64 text is taken for a
// secret's.
const minPart = 8
