//go:build !lite && cgo && ((linux && (amd64 || arm64)) || (darwin && (amd64 || arm64)) || (windows && amd64))

package duckdb

import (
	"database/sql"
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	duckdb "github.com/duckdb/duckdb-go/v2"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the list of functions again")

// section is a section of functions.txt.
type section struct {
	kind, version, rule string
	names               []string
}

func sections() (all []section) {
	form := regexp.MustCompile(`^(.*?)(?: \((.*)\))?(?:: (.*))?$`)
	for _, text := range strings.Split(functionsText, "\n= ")[1:] {
		heading, names, _ := strings.Cut(text, "\n")
		found := form.FindStringSubmatch(heading)
		all = append(all, section{found[1], found[2], found[3], strings.Fields(names)})
	}
	return all
}

// TestFunctionsAreDecided compares the decisions with the catalog of the linked
// DuckDB. A new function needs a decision: read its documentation first.
func TestFunctionsAreDecided(t *testing.T) {
	t.Parallel()
	connector, err := duckdb.NewConnector("", nil)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var version string
	if err := db.QueryRowContext(t.Context(), "SELECT version()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	decided := map[bool]map[string]string{true: {}, false: {}} // in a FROM -> name -> kind
	for _, s := range sections() {
		if s.version != "" && !strings.HasPrefix(version, "v"+s.version) {
			continue
		}
		inFrom := s.kind == "from" || s.kind == "not from"
		for _, name := range s.names {
			if decided[inFrom][name] != "" {
				t.Errorf("%s has two decisions", name)
			}
			decided[inFrom][name] = s.kind
		}
	}
	rows, err := db.QueryContext(t.Context(), `SELECT DISTINCT lower(function_name), function_type IN ('table', 'table_macro'), function_type, coalesce(has_side_effects, false)
		FROM duckdb_functions() WHERE function_type <> 'pragma' AND NOT regexp_matches(function_name, '^(__internal_|collate_|icu_collate_)')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	present := map[bool]map[string]bool{true: {}, false: {}}
	for rows.Next() {
		var name, kind string
		var inFrom, sideEffects bool
		if err := rows.Scan(&name, &inFrom, &kind, &sideEffects); err != nil {
			t.Fatal(err)
		}
		present[inFrom][name] = true
		decision := decided[inFrom][name]
		switch {
		case decision == "":
			t.Errorf("DuckDB %s has the %s %s, which functions.txt does not decide", version, kind, name)
		case sideEffects && decision == "compute" && !regexp.MustCompile(`^(random|uuid|uuidv4|uuidv7|gen_random_uuid)$`).MatchString(name):
			t.Errorf("%s has side effects and is not refused", name)
		case kind == "aggregate" && decision == "refused":
			t.Errorf("the aggregate %s is refused, but list_aggregate can call it", name)
		}
	}
	for inFrom, names := range decided {
		for name := range names {
			if !present[inFrom][name] && !strings.HasSuffix(name, "*") {
				t.Errorf("functions.txt decides %s, which DuckDB %s does not have", name, version)
			}
		}
	}
}

// TestTheGuideListsTheFunctions compares the page with the decisions.
func TestTheGuideListsTheFunctions(t *testing.T) {
	t.Parallel()
	const page = "../../../../../docs/reference/sql-functions.md"
	before, err := os.ReadFile(page)
	if err != nil && !*update {
		t.Fatal(err)
	}
	text := strings.Builder{}
	text.WriteString(`# Functions in SQL on DuckDB

<!-- Generated from functions.txt by go test ./internal/engine/duckdb -update in plugins/memory. -->

[` + "`data.query` and `memory.sql_query`" + `](../guide/memory-tables.md#sql-over-the-memory-memorysql_query) on DuckDB 1.5.6 call functions that only compute. Each
function of DuckDB's catalog has a decision; a function that is not listed is refused.

## Allowed

In FROM: ` + listed(slices.Sorted(maps.Keys(functions.tables))) + `.

In an expression, in a lambda, and as an aggregate or window function, all of these:

` + listed(only("compute", "")) + `.

## Refused

| rule | functions |
| --- | --- |
`)
	var rules []string
	for _, s := range sections() {
		if s.kind == "refused" && !slices.Contains(rules, s.rule) {
			rules = append(rules, s.rule)
		}
	}
	slices.Sort(rules)
	for _, rule := range rules {
		if names := only("refused", rule); len(names) > 0 {
			text.WriteString("| " + rule + " | " + listed(names) + " |\n")
		}
	}
	text.WriteString("| it reads files, settings or the catalog, or changes something, in a FROM | " + listed(only("not from", "")) + " |\n")
	if *update {
		if err := os.WriteFile(page, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(before), text.String()); diff != "" {
		t.Errorf("the page differs; run go test -update (-have +want):\n%s", diff)
	}
}

// only returns the names of a kind that DuckDB 1.5 has, with one rule.
func only(kind, rule string) (names []string) {
	for _, s := range sections() {
		if s.kind == kind && s.version != "2.0" && s.rule == rule {
			names = append(names, s.names...)
		}
	}
	slices.Sort(names)
	return names
}

func listed(names []string) string {
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = "`" + strings.ReplaceAll(n, "|", `\|`) + "`"
	}
	return strings.Join(quoted, ", ")
}
