//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"

	duckdb "github.com/duckdb/duckdb-go/v2"

	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
)

// column is one of a query's answer.
type column struct{ name, kind string }

// expression is the n-th column in a form that is a value of the value model
// or easily made one. Lists, structs and maps come as JSON, which keeps large
// numbers; what JSON has no form for comes as DuckDB writes it.
func (c column) expression(n int) string {
	reference := "#" + strconv.Itoa(n)
	switch {
	case c.isNested():
		return "CAST(to_json(" + reference + ") AS VARCHAR)"
	case c.isAsIs():
		return reference
	}
	return "CAST(" + reference + " AS VARCHAR)"
}

// passes are the types that come as they are.
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

// value brings what the driver gives into the value model. A decimal becomes a
// float; an instant text in RFC 3339, in UTC; a blob base64.
func (c column) value(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if c.kind == "JSON" || c.isNested() {
			return value.Decode([]byte(v))
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
		return strconv.ParseFloat(v.String(), 64)
	case time.Time:
		return v.UTC().Format(time.RFC3339Nano), nil
	case []byte:
		return base64.StdEncoding.EncodeToString(v), nil
	}
	return nil, fmt.Errorf("a %s cannot be given to a workflow; cast it to VARCHAR", c.kind)
}

// whole is an integer in the value model.
func whole(n *big.Int) any {
	if n.IsInt64() {
		return n.Int64()
	}
	return json.Number(n.String())
}

// shortest is a 32-bit float with the digits that a reader expects.
func shortest(f float32) any {
	wide, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return nil // infinity and NaN have text that parses; this cannot be
	}
	return sandbox.Float(wide)
}
