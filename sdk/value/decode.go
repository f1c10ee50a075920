package value

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Decode reads exactly one JSON value. A syntax error is a [*json.SyntaxError]
// with the byte offset; anything except white space after the value is also an
// error.
func Decode(data []byte) (any, error) {
	if v, ok := parse(data); ok {
		return v, nil
	}
	return decode(data)
}

// decode is Decode with encoding/json. It returns the errors, and reads text that parse
// does not support.
func decode(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("unexpected data after the JSON value at byte %d", dec.InputOffset())
	}
	return fixNumbers(v)
}

// fixNumbers replaces the json.Number values of a newly decoded tree in place.
func fixNumbers(v any) (any, error) {
	switch v := v.(type) {
	case json.Number:
		return FromNumber(v)
	case []any:
		for i, e := range v {
			fixed, err := fixNumbers(e)
			if err != nil {
				return nil, err
			}
			v[i] = fixed
		}
	case map[string]any:
		for k, e := range v {
			switch e.(type) {
			case json.Number, []any, map[string]any:
				fixed, err := fixNumbers(e)
				if err != nil {
					return nil, err
				}
				v[k] = fixed
			}
		}
	}
	return v, nil
}

// FromNumber returns the value of a JSON number: int64 for an integer that
// fits, the number itself for a longer integer, otherwise float64. A float
// beyond the range of float64 is an error.
func FromNumber(n json.Number) (any, error) {
	s := string(n)
	if !strings.ContainsAny(s, ".eE") {
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, nil
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, fmt.Errorf("number %s does not fit a 64-bit float", s)
	}
	return f, nil
}
