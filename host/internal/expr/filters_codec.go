package expr

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/sdk/value"
)

func codecFilters() map[string]filter {
	return map[string]filter{
		"b64decode": {apply: b64decodeFilter},
		"b64encode": {apply: func(a *args) (any, error) {
			s := a.text()
			if len(s) > maxText/4*3 {
				return nil, ErrTooLong
			}
			return base64.StdEncoding.EncodeToString([]byte(s)), nil
		}},
		"fromjson": {apply: fromjsonFilter},
		"pprint":   {apply: func(a *args) (any, error) { return indented(a.in, 2) }},
		"sha256": {apply: func(a *args) (any, error) {
			sum := sha256.Sum256([]byte(a.text()))
			return hex.EncodeToString(sum[:]), nil
		}},
		"tojson": {params: params("indent"), apply: tojsonFilter},
	}
}

func tojsonFilter(a *args) (any, error) {
	if a.has(0) && !isNull(a.list[0]) {
		return indented(a.in, a.int(0, 0))
	}
	out, err := appendJSON(nil, a.in)
	return string(out), err
}

func indented(v any, width int) (any, error) {
	if width < 0 || width > 64 {
		return nil, fmt.Errorf("JSON can be indented by 0 to 64 spaces, not by %d", width)
	}
	out, err := appendIndented(nil, v, "", strings.Repeat(" ", width))
	if err == nil && len(out) > maxText {
		err = ErrTooLong
	}
	return string(out), err
}

func fromjsonFilter(a *args) (any, error) {
	if isNull(a.in) {
		return nil, nil
	}
	text := []byte(a.text())
	v, err := value.Decode(text)
	var syntax *json.SyntaxError
	switch {
	case err == nil:
		return v, nil
	case len(bytes.TrimSpace(text)) == 0:
		return nil, errors.New("fromjson: the text is empty")
	case errors.Is(err, io.ErrUnexpectedEOF):
		line, column := lineColumn(string(text), len(text))
		return nil, fmt.Errorf("fromjson: invalid JSON at line %d, column %d: the text ends too early", line, column)
	case errors.As(err, &syntax):
		line, column := lineColumn(string(text), max(0, int(syntax.Offset)-1))
		return nil, fmt.Errorf("fromjson: invalid JSON at line %d, column %d: %s", line, column, syntax)
	}
	return nil, fmt.Errorf("fromjson: invalid JSON: %w", err)
}

func b64decodeFilter(a *args) (any, error) {
	s := strings.TrimRight(strings.Join(strings.Fields(a.text()), ""), "=")
	encoding := base64.RawStdEncoding
	if strings.ContainsAny(s, "-_") {
		encoding = base64.RawURLEncoding
	}
	out, err := encoding.DecodeString(s)
	if err != nil {
		return nil, errors.New("b64decode: the text is not base64")
	}
	if !utf8.Valid(out) {
		return nil, errors.New("b64decode: the decoded bytes are not UTF-8 text")
	}
	return string(out), nil
}
