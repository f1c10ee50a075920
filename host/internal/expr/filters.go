package expr

import (
	"math/rand/v2"
)

// buildFilters returns the table of Jinja's filters and tea's own, by name.
func buildFilters() map[string]filter {
	table := map[string]filter{}
	for _, part := range []map[string]filter{
		textFilters(), markupFilters(), numberFilters(),
		listFilters(), selectionFilters(), codecFilters(),
	} {
		for name, f := range part {
			table[name] = f
		}
	}
	table["d"] = table["default"]
	table["e"] = table["escape"]
	table["count"] = table["length"]
	table["json"] = table["tojson"]
	return table
}

func params(names ...string) []string { return names }

func listFilters() map[string]filter {
	return map[string]filter{
		"batch":   {params: params("linecount", "fill_with"), required: 1, apply: batchFilter},
		"default": {params: params("default_value", "boolean"), apply: defaultFilter},
		"dictsort": {
			params: params("case_sensitive", "by", "reverse"),
			apply:  dictsortFilter,
		},
		"first":   {apply: func(a *args) any { return element(a.elements(), 0) }},
		"groupby": {params: params("attribute", "default", "case_sensitive"), required: 1, apply: groupbyFilter},
		"items":   {apply: itemsFilter},
		"join":    {params: params("d", "attribute"), apply: joinFilter},
		"last":    {apply: func(a *args) any { return element(a.elements(), -1) }},
		"length":  {apply: func(a *args) any { return length(a.in) }},
		"list":    {apply: func(a *args) any { return a.elements() }},
		"max":     {params: params("case_sensitive", "attribute"), apply: func(a *args) any { return extreme(a, 1) }},
		"min":     {params: params("case_sensitive", "attribute"), apply: func(a *args) any { return extreme(a, -1) }},
		"random":  {apply: randomFilter},
		"reverse": {apply: reverseFilter},
		"slice":   {params: params("slices", "fill_with"), required: 1, apply: sliceFilter},
		"sort":    {params: params("reverse", "case_sensitive", "attribute"), apply: sortFilter},
		"sum":     {params: params("attribute", "start"), apply: sumFilter},
		"unique":  {params: params("case_sensitive", "attribute"), apply: uniqueFilter},
	}
}

// defaultFilter replaces null, and with boolean=true every value that counts as
// false.
func defaultFilter(a *args) any {
	if isNull(a.in) || a.bool(1, false) && !truthy(a.in) {
		return a.any(0, "")
	}
	return a.in
}

func randomFilter(a *args) any {
	list := a.elements()
	if len(list) == 0 {
		return undefined
	}
	return list[rand.IntN(len(list))]
}
