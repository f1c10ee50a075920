package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/expr"
	"github.com/the-edge-agent/tea/sdk/value"
)

// form is a secret in one encoding. Checkpoints contain the name of the encoding,
// so its meaning must not change; plain text has no name.
type form struct{ as, text string }

// forms returns the encodings that a checkpoint can name: plain, inside JSON, in an
// error message, in a URL, in Base64 and in hexadecimal digits. If encodings are
// equal, it returns the first.
func forms(text string) []form {
	inner := inJSON(text)
	inURL := inURL(text)
	list := []form{
		{"", text},
		{"json", inner},
		{"quoted", unquoted(strconv.Quote(text))},
		{"html json", inHTMLJSON(text)},
		{"query", inURL[0]},
		{"component", inURL[1]},
		{"segment", inURL[2]},
		{"path", inURL[3]},
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

// mostNested is the maximum depth of JSON nested in JSON that a checkpoint
// names.
const mostNested = 5

// nestedForms returns a secret in JSON inside a JSON string, two or more levels
// deep. It returns none for a secret without characters that JSON escapes.
func nestedForms(text string) []form {
	var list []form
	for _, style := range []struct {
		as     string
		encode func(string) string
	}{{"json", inJSON}, {"html json", inHTMLJSON}} {
		inner := style.encode(text)
		for depth := 2; depth <= mostNested && strings.Contains(inner, `\`); depth++ {
			inner = style.encode(inner)
			list = append(list, form{style.as + " " + strconv.Itoa(depth), inner})
		}
	}
	return list
}

func unquoted(quoted string) string { return quoted[1 : len(quoted)-1] }

func inJSON(text string) string { return unquoted(string(value.AppendString(nil, text))) }

// inURL returns a text as in a query, as a component, as a segment of a path, and
// as a path.
func inURL(text string) []string {
	query := url.QueryEscape(text)
	component := strings.ReplaceAll(query, "+", "%20")
	return []string{query, component, url.PathEscape(text), strings.ReplaceAll(component, "%2F", "/")}
}

// inHTMLJSON is inJSON with <, > and & escaped, as encoding/json writes them.
func inHTMLJSON(text string) string {
	return strings.NewReplacer("<", `\u003c`, ">", `\u003e`, "&", `\u0026`).Replace(inJSON(text))
}

// base64Forms returns a secret in Base64, alone and as a part of a longer text:
// with zero, one or two bytes before it in its first group of three. For a
// part, it returns only the characters without bits of the surrounding text.
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

// numberForm is a secret as a number. Checkpoints contain the name, so its meaning
// must not change.
type numberForm struct {
	as     string
	number any
}

// numbersOf returns the numbers that a secret can be converted to: as it is, as a
// float, and as an integer with the precision of a float. It returns none for other
// texts.
func numbersOf(text string) []numberForm {
	digits := strings.TrimLeft(text, "0")
	if digits == "" || digits[0] < '1' || digits[0] > '9' {
		digits = text
	}
	number, err := value.Decode([]byte(digits))
	if err != nil {
		return nil
	}
	switch number.(type) {
	case int64, float64, json.Number:
	default:
		return nil
	}
	list := []numberForm{{"number", number}}
	if float, err := strconv.ParseFloat(digits, 64); err == nil {
		list = append(list, numberForm{"float", float})
		if whole, _ := big.NewFloat(float).Int(nil); new(big.Float).SetInt(whole).Cmp(big.NewFloat(float)) == 0 {
			if rounded, err := value.Decode([]byte(whole.String())); err == nil {
				list = append(list, numberForm{"rounded", rounded})
			}
		}
	}
	return list
}

const (
	// minPart is the minimum length of a recognised part of a Base64 text.
	minPart = 8
	// mostInBase64 is the maximum depth of JSON nested in JSON that is recognised
	// in Base64.
	mostInBase64 = 3
	// minLine is the minimum length of a recognised single line of a secret.
	minLine = 8
)

// patterns returns the texts by which a secret is recognised, in a text as
// written and in its canonical form; see [canonical].
func patterns(text string) []string {
	var list []string
	for _, f := range forms(text) {
		list = append(list, f.text)
	}
	// A document with the secret can be encoded as a whole.
	for _, inner := range embedded(text) {
		list = append(list, base64Parts(inner)...)
	}
	for _, n := range numbersOf(text) {
		if float, is := n.number.(float64); is {
			list = append(list, strconv.FormatFloat(float, 'e', -1, 64))
		}
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); len(line) >= minLine && line != text {
			list = append(list, line)
			list = append(list, expr.Reversible(line)...)
		}
	}
	for _, plain := range []string{text, inJSON(text)} {
		list = append(list, expr.Reversible(plain)...)
	}
	for _, plain := range slices.Clone(list) {
		// The second form follows a backslash that is not part of it.
		for _, c := range []string{canonicalText(plain), canonicalText(`\` + plain)} {
			list = append(list, c)
			if spaced := strings.ReplaceAll(c, " ", "+"); spaced != c {
				list = append(list, spaced)
			}
		}
	}
	list = slices.DeleteFunc(list, func(p string) bool { return len(p) < minSearchable })
	slices.Sort(list)
	return slices.Compact(list)
}

// embedded returns the encodings of a secret inside a document, other than plain,
// that are recognised if the document is in Base64.
func embedded(text string) []string {
	list := base64Parts(text)
	for _, encode := range []func(string) string{inJSON, inHTMLJSON} {
		inner := text
		for range mostInBase64 {
			inner = encode(inner)
			list = append(list, inner)
		}
	}
	list = append(list, inURL(text)...)
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(inner string) bool { return inner == text })
}

// base64Parts returns the parts of a longer Base64 text that contain only bits of
// this text.
func base64Parts(text string) []string {
	var list []string
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for _, f := range base64Forms("", encoding, text)[2:] {
			list = append(list, f.text)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
