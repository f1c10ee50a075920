package sqlite

import (
	"cmp"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// policy decides which actions of a statement to allow while SQLite compiles it.
// It records the first refusal.
type policy struct {
	// main and temp are the tables that a query may name, by schema.
	main, temp map[string]bool
	// views may read the tables below them: tables of main that are views, and the
	// views of the sandbox. below collects these tables.
	views, below map[string]bool
	// own are names that the query defines without reading a column of them. system
	// are SQLite's own tables; they are set by precompilation, which collects own.
	own, system map[string]bool
	refused     string
	rule        string
}

// precompilePolicy returns the policy for precompilation, where the sandbox's views are in
// temp, so that they are not found as tables of the database.
func precompilePolicy(bounds store.Sandbox, modules []string) *policy {
	p := &policy{main: folded(bounds.Tables...), temp: map[string]bool{}, own: map[string]bool{}, system: folded(modules...)}
	for _, v := range bounds.Views {
		p.temp[sandbox.Fold(v.Name)] = true
	}
	return p
}

// onDatabase returns the policy for a query that has passed precompilation. A WITH
// with the name of a view could read as much as the view, but precompilation has
// checked the tables that it names.
func onDatabase(bounds store.Sandbox, own map[string]bool) *policy {
	return &policy{main: folded(bounds.Tables...), views: folded(sandbox.Names(bounds)...), below: map[string]bool{}, own: own}
}

func folded(names ...string) map[string]bool {
	set := map[string]bool{}
	for _, n := range names {
		set[sandbox.Fold(n)] = true
	}
	return set
}

// decide is the authorizer. via is the name of the view or WITH that reads a
// table. If no column of the table is read, the column is empty, and via can be
// empty.
func (p *policy) decide(action sqlite.AuthorizerActionCode, first, second, database, via string) sqlite.AuthorizerReturnCode {
	switch action {
	case sqlite.AuthSelect, sqlite.AuthRecursive:
		return sqlite.AuthorizerOK
	case sqlite.AuthRead:
		if p.readable(sandbox.Fold(first), second, database, sandbox.Fold(via)) {
			return sqlite.AuthorizerOK
		}
		return p.deny("the table "+first, "only the listed tables are open to queries")
	case sqlite.AuthFunction:
		if pure()[sandbox.Fold(second)] {
			return sqlite.AuthorizerOK
		}
		return p.deny("the function "+second, "it is not one of the allowed functions")
	}
	return p.deny("a statement that is not a plain SELECT", "only a single SELECT is allowed")
}

func (p *policy) readable(table, column, database, via string) bool {
	switch {
	case database == "temp":
		return p.temp[table]
	case database != "" && database != "main":
		return false
	case p.main[table], pureTables()[table]:
		return true
	case p.views[via]:
		p.below[table] = true
		return true
	case column != "":
		return false
	}
	return p.below[table] || database == "" && p.isOwn(table)
}

// isOwn reports whether a table whose columns are not read can be a name that the
// query defines. Precompilation collects these names: its database has no other
// tables, so a name that is not SQLite's belongs to the query.
func (p *policy) isOwn(table string) bool {
	if p.system != nil && !p.system[table] && !strings.HasPrefix(table, "sqlite_") && !strings.HasPrefix(table, "pragma_") {
		p.own[table] = true
	}
	return p.own[table] || p.temp[table] || p.views[table]
}

func (p *policy) deny(what, rule string) sqlite.AuthorizerReturnCode {
	if p.refused == "" {
		p.refused, p.rule = what, rule
	}
	return sqlite.AuthorizerDeny
}

// maxValue bounds the texts and blobs of a query.
const maxValue = 1 << 20

// limits returns SQLite's limits for an untrusted query.
func limits(bounds store.Sandbox) map[int]int {
	return map[int]int{
		sqlite3.SQLITE_LIMIT_LENGTH:              cmp.Or(bounds.MaxValue, maxValue),
		sqlite3.SQLITE_LIMIT_SQL_LENGTH:          2 * sandbox.MaxQuery,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH:          500,
		sqlite3.SQLITE_LIMIT_COMPOUND_SELECT:     100,
		sqlite3.SQLITE_LIMIT_VDBE_OP:             1_000_000,
		sqlite3.SQLITE_LIMIT_FUNCTION_ARG:        100,
		sqlite3.SQLITE_LIMIT_ATTACHED:            0,
		sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500,
		sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER:     max(len(bounds.Args), 1),
		sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH:       1,
		sqlite3.SQLITE_LIMIT_WORKER_THREADS:      0,
	}
}

// pure are the functions that an untrusted query may call. They compute from
// their arguments alone, in about linear time, since a call cannot be
// interrupted. So the list omits json_patch (quadratic), json_pretty and unhex;
// functions.go replaces instr, replace and trim.
var pure = sandbox.Words(`
	-> ->> abs acos acosh asin asinh atan atan2 atanh avg ceil ceiling char coalesce concat concat_ws cos cosh count cume_dist current_date
	current_time current_timestamp date datetime degrees dense_rank exp first_value floor format glob group_concat hex if ifnull iif instr json
	json_array json_array_insert json_array_length json_error_position json_extract json_group_array json_group_object json_insert json_object
	json_quote json_remove json_replace json_set json_type json_valid julianday lag last_value lead length like likelihood likely ln
	log log10 log2 lower ltrim max min mod nth_value ntile nullif octet_length percent_rank pi pow power printf quote radians random rank
	replace round row_number rtrim sign sin sinh soundex sqrt strftime string_agg substr substring sum tan tanh time timediff total trim trunc
	typeof unicode unistr unistr_quote unixepoch unlikely upper
`)

// pureTables are the table functions that meet the same conditions.
var pureTables = sandbox.Words("json_each json_tree")
