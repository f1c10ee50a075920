package expr

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
)

func codecFilters() map[string]filter {
	return map[string]filter{
		"b64decode": {apply: b64decodeFilter},
		"b64encode": {apply: func(a *args) any {
			s := a.text()
			checkText(base64.StdEncoding.EncodedLen(len(s)))
			return base64.StdEncoding.EncodeToString([]byte(s))
		}},
		"fromjson": {apply: fromjsonFilter},
		"pprint":   {apply: func(a *args) any { return indented(a.in, 2) }},
		"sha256": {apply: func(a *args) any {
			sum := sha256.Sum256([]byte(a.text()))
			return hex.EncodeToString(sum[:])
		}},
		"tojson": {params: params("indent"), apply: tojsonFilter},
	}
}

func tojsonFilter(a *args) any {
	if a.has(0) && !isNull(a.list[0]) {
		return indented(a.in, a.int(0, 0))
	}
	return string(appendJSON(nil, a.in))
}

func indented(v any, width int) any {
	if width < 0 || width > 64 {
		panic(failf("JSON can be indented by 0 to 64 spaces, not by %d", width))
	}
	out := appendTree(nil, v, &indentation{step: strings.Repeat(" ", width)})
	checkText(len(out))
	return string(out)
}

func fromjsonFilter(a *args) any {
	if isNull(a.in) {
		return nil
	}
	text := []byte(a.text())
	v, err := value.Decode(text)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return v
	case len(bytes.TrimSpace(text)) == 0:
		panic(failf("fromjson: the text is empty"))
	case errors.Is(err, io.ErrUnexpectedEOF):
		line, column := lineColumn(string(text), len(text))
		panic(failf("fromjson: invalid JSON at line %d, column %d: the text ends too early", line, column))
	case errors.As(err, &syntax):
		line, column := lineColumn(string(text), max(0, int(syntax.Offset)-1))
		panic(failf("fromjson: invalid JSON at line %d, column %d: %s", line, column, syntax))
	}
	panic(failf("fromjson: invalid JSON: %w", err))
}

func b64decodeFilter(a *args) any {
	s := strings.TrimRight(strings.Join(strings.Fields(a.text()), ""), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	out, err := encoding.DecodeString(s)
	switch {
	case err != nil:
		panic(failf("b64decode: the text is not base64"))
	case !utf8.Valid(out):
		panic(failf("b64decode: the decoded bytes are not UTF-8 text"))
	}
	return string(out)
}
