//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// column is a column of a query's result.
type column struct{ name, kind string }

// expression returns the n-th column in a form that value can convert. Lists,
// structs and maps are converted to JSON, which keeps large numbers; types
// without a form in JSON are converted to text.
func (c column) expression(n int) string {
	reference := "#" + strconv.Itoa(n)
	switch {
	case c.kind == "VARIANT":
		return "CAST(CAST(" + reference + " AS JSON) AS VARCHAR)"
	case c.isNested():
		return "CAST(to_json(" + reference + ") AS VARCHAR)"
	case c.isAsIs():
		return reference
	}
	return "CAST(" + reference + " AS VARCHAR)"
}

// passes are the types that need no conversion in SQL.
var passes = map[string]bool{
	"BOOLEAN": true, "VARCHAR": true, "BLOB": true, "FLOAT": true, "DOUBLE": true, "HUGEINT": true, "UHUGEINT": true, "BIGNUM": true,
	"TINYINT": true, "SMALLINT": true, "INTEGER": true, "BIGINT": true, "UTINYINT": true, "USMALLINT": true, "UINTEGER": true, "UBIGINT": true,
	"TIMESTAMP": true, "TIMESTAMP_S": true, "TIMESTAMP_MS": true, "TIMESTAMP_NS": true, "TIMESTAMP WITH TIME ZONE": true,
}

func (c column) isAsIs() bool { return passes[c.kind] || strings.HasPrefix(c.kind, "DECIMAL(") }

func (c column) isNested() bool {
	if strings.HasSuffix(c.kind, "]") {
		return true
	}
	for _, prefix := range []string{"STRUCT(", "MAP(", "UNION("} {
		if strings.HasPrefix(c.kind, prefix) {
			return true
		}
	}
	return false
}

// value converts a value of the driver to the value model:
//
//	BOOLEAN                        true or false
//	integers, HUGEINT, BIGNUM      a number, exact
//	FLOAT, DOUBLE                  a number, null for NaN and infinity
//	DECIMAL                        a number, or text if a 64-bit float would lose digits
//	TIMESTAMP, TIMESTAMPTZ         text in RFC 3339, in UTC
//	BLOB                           text in base64
//	JSON, VARIANT, lists,          a list or an object of such values
//	structs, maps
//	all others (DATE, TIME,        DuckDB's text
//	INTERVAL, UUID, ENUM, BIT)
//
// In lists and objects the values have DuckDB's form in JSON: an instant is
// DuckDB's text.
func (c column) value(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if c.kind == "JSON" || c.kind == "VARIANT" || c.isNested() {
			return value.Decode(finite(v))
		}
		return v, nil
	case nil, bool, int64:
		return v, nil
	case int8:
		return int64(v), nil
	case int16:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case uint8:
		return int64(v), nil
	case uint16:
		return int64(v), nil
	case uint32:
		return int64(v), nil
	case uint64:
		return whole(new(big.Int).SetUint64(v)), nil
	case *big.Int:
		return whole(v), nil
	case float32:
		return shortest(v), nil
	case float64:
		return sandbox.Float(v), nil
	case duckdb.Decimal:
		if v.Scale == 0 {
			return whole(v.Value), nil
		}
		return sandbox.Decimal(v.String()), nil
	case time.Time:
		switch v.UnixMicro() {
		case math.MaxInt64:
			return "infinity", nil
		case -math.MaxInt64:
			return "-infinity", nil
		}
		return v.UTC().Format(time.RFC3339Nano), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	}
	return nil, fmt.Errorf("a %s cannot be returned to a workflow; cast it to VARCHAR", c.kind)
}

// unbounded matches numbers that DuckDB writes although JSON does not have them,
// or a string, which finite leaves unchanged.
var unbounded = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\b(?:NaN|nan|Infinity|inf)\b`)

// finite replaces numbers that are not finite with null.
func finite(text string) []byte {
	return unbounded.ReplaceAllFunc([]byte(text), func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("null")
	})
}

// whole returns an integer in the value model.
func whole(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return json.Number(n.String())
}

// shortest returns a 32-bit float as the float64 with the same decimal digits.
func shortest(f float32) any {
	wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return nil // not reached: every float has a text that parses
	}
	return sandbox.Float(wide)
}
