package sqlite

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"

	"modernc.org/sqlite"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
)

// connector opens connections whose functions take time linear in the length of
// their arguments. SQLite's own instr, replace and trim take time proportional to
// the product of two lengths, minutes for a megabyte, and cannot be interrupted.
type connector struct {
	driver *sqlite.Driver
	dsn    string
}

func newConnector(dsn string) (connector, error) {
	d := &sqlite.Driver{}
	err := errors.Join(
		d.RegisterDeterministicScalarFunction("instr", 2, instr),
		d.RegisterDeterministicScalarFunction("replace", 3, replace),
		d.RegisterCollationUtf8(clock.Collation, clock.Compare),
	)
	for name, cut := range map[string]func(string, func(rune) bool) string{"trim": strings.TrimFunc, "ltrim": strings.TrimLeftFunc, "rtrim": strings.TrimRightFunc} {
		err = errors.Join(err, d.RegisterDeterministicScalarFunction(name, 2, trim(cut)))
	}
	return connector{driver: d, dsn: dsn}, err
}

func (c connector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }

func (c connector) Driver() driver.Driver { return c.driver }

// instr returns the position of a text in another one in characters, or of a blob
// in another one in bytes, from 1; 0 if it does not occur.
func instr(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	if args[0] == nil || args[1] == nil {
		return nil, nil
	}
	in, inBlob := args[0].([]byte)
	of, ofBlob := args[1].([]byte)
	if inBlob && ofBlob {
		return int64(bytes.Index(in, of) + 1), nil
	}
	text := toText(args[0])
	at := strings.Index(text, toText(args[1]))
	if at < 0 {
		return int64(0), nil
	}
	return int64(utf8.RuneCountInString(text[:at]) + 1), nil
}

// errTooBig has the text of SQLite's error.
var errTooBig = errors.New("string or blob too big")

// replace replaces all occurrences of a text.
func replace(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	if args[0] == nil || args[1] == nil || args[2] == nil {
		return nil, nil
	}
	text, old, with := toText(args[0]), toText(args[1]), toText(args[2])
	if old == "" {
		return text, nil
	}
	if growth := len(with) - len(old); growth > 0 && len(text)+growth*strings.Count(text, old) > maxValue {
		return nil, errTooBig
	}
	return strings.ReplaceAll(text, old, with), nil
}

// trim removes characters from the ends of a text.
func trim(cut func(text string, in func(rune) bool) string) func(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return func(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
		if args[0] == nil || args[1] == nil {
			return nil, nil
		}
		set := map[rune]bool{}
		for _, r := range toText(args[1]) {
			set[r] = true
		}
		return cut(toText(args[0]), func(r rune) bool { return set[r] }), nil
	}
}

// toText converts a value to text as SQLite does.
func toText(v driver.Value) string {
	switch v := v.(type) {
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		text := strconv.FormatFloat(v, 'g', 15, 64)
		digits, exponent, scientific := strings.Cut(text, "e")
		if !strings.Contains(digits, ".") && !strings.ContainsAny(digits, "IN") {
			digits += ".0"
		}
		if scientific {
			return digits + "e" + exponent
		}
		return digits
	}
	return ""
}
