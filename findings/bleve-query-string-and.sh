#!/bin/sh
# bleve v2.6.3 (github.com/blevesearch/bleve/v2): the query string knows neither AND nor
# NOT, and accepts both.
#
# Words of a query string are optional, and AND, OR and NOT are words. The standard
# analyzer drops them as stop words, so they change nothing: "pump AND oil" finds what
# has either, and "NOT pump" finds the pump. + and - are the operators. A word with * or
# ? is not analyzed, so an upper-case letter in it matches nothing, while the same word
# without * matches.
#
# A good guess: AND and NOT work as in the query strings of Lucene, from which the
# syntax is taken.
#
# Seen on 28 November 2026:
#   pump AND oil: oil pump pump+oil
#   +pump +oil: pump+oil
#   NOT pump: pump pump+oil
#   -pump: oil valve
#   PUMP: pump pump+oil
#   PU*:
#
# Exits with 1 if the behaviour changed.
set -eu
self=$(realpath "$0")
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir"; rm -rf "$dir"' EXIT
cd "$dir"
export GOWORK=off GOFLAGS=-mod=mod
cat >main.go <<'GO'
package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/blevesearch/bleve/v2"
)

func main() {
	index, err := bleve.NewMemOnly(bleve.NewIndexMapping())
	must(err)
	for id, text := range map[string]string{"pump": "the pump runs", "oil": "oil and water", "pump+oil": "the pump leaks oil", "valve": "a valve"} {
		must(index.Index(id, map[string]any{"text": text}))
	}
	for _, query := range []string{"pump AND oil", "+pump +oil", "NOT pump", "-pump", "PUMP", "PU*"} {
		found, err := index.Search(bleve.NewSearchRequest(bleve.NewQueryStringQuery(query)))
		must(err)
		var ids []string
		for _, hit := range found.Hits {
			ids = append(ids, hit.ID)
		}
		slices.Sort(ids)
		fmt.Println(strings.TrimSpace(query + ": " + strings.Join(ids, " ")))
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
GO
go mod init finding >/dev/null 2>&1
go mod edit -require github.com/blevesearch/bleve/v2@v2.6.3
go mod tidy >/dev/null 2>&1
go run . >seen
cat seen
sed -n 's/^#   //p' "$self" | diff - seen
