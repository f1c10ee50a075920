package assemble

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestVariablesOfQueriesAreParameters(t *testing.T) {
	t.Parallel()
	variables := map[string]any{"a": int64(1), "b_2": "x' OR '1'='1", "none": nil}
	for sql, want := range map[string]struct {
		sql  string
		args []any
	}{
		"SELECT 1": {"SELECT 1", nil},
		"SELECT {a}, {b_2} WHERE x = {none} OR y={a}":         {"SELECT ?, ? WHERE x = ? OR y=?", []any{int64(1), "x' OR '1'='1", nil, int64(1)}},
		`SELECT '{a}', "{a}" -- {a}` + "\n" + `/* {x} */ {a}`: {`SELECT '{a}', "{a}" -- {a}` + "\n" + `/* {x} */ ?`, []any{int64(1)}},
		"SELECT 'it''s {x}', {'k': 1}, {a":                    {"SELECT 'it''s {x}', {'k': 1}, {a", nil},
		"SELECT '{x":                                          {"SELECT '{x", nil},
		"-- {x}":                                              {"-- {x}", nil},
	} {
		bound, args, err := bind(sql, variables)
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		if diff := cmp.Diff(want.sql, bound) + cmp.Diff(want.args, args); diff != "" {
			t.Errorf("%s:\n%s", sql, diff)
		}
	}
}
