package expr

import (
	"strings"
	"unicode"

	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// method calls object.name(...): Python's methods that do not change the
// object. A method of null returns null.
func (r *run) method(object any, name string, v values) any {
	if own, ok := object.(interface {
		method(name string, args values) any
	}); ok {
		return own.method(name, v)
	}
	var table map[string]filter
	switch o := plainValue(object).(type) {
	case nil:
		return undefined
	case string:
		table = stringMethods()
	case []any:
		table = listMethods()
		switch name {
		case "append", "extend", "insert", "pop", "remove", "sort", "reverse", "clear":
			panic(immutable(name, "build a new list, such as list + [x], or sort it with the filter | sort"))
		}
	case map[string]any:
		table = objectMethods()
		switch name {
		case "update", "pop", "setdefault", "clear", "popitem":
			panic(immutable(name, "build a new object, such as dict(object, key=value)"))
		}
		object = o
	}
	m, ok := table[name]
	if !ok {
		panic(failf("%s has no method %q", typeName(object), name).hinted(diag.Suggest(name, keys(table))))
	}
	return r.call(m, name+"()", object, v)
}

func immutable(method, hint string) failure {
	return failf("%s() is not available: values cannot be changed", method).hinted(hint)
}

func buildObjectMethods() map[string]filter {
	return map[string]filter{
		"get": {params: params("key", "default"), required: 1, apply: func(a *args) any {
			if v := at(a.in, a.any(0, nil)); v != undefined {
				return v
			}
			return a.any(1, undefined)
		}},
		"copy":  {apply: func(a *args) any { return a.in }}, // values do not change
		"items": {apply: itemsFilter},
		"keys":  {apply: func(a *args) any { return a.elements() }},
		"values": {apply: func(a *args) any {
			out := []any{}
			for _, k := range a.elements() {
				out = append(out, at(a.in, k))
			}
			return out
		}},
	}
}

func buildListMethods() map[string]filter {
	find := func(a *args) (first, count int) {
		first = -1
		for i, v := range a.elements() {
			if equal(v, a.any(0, nil)) {
				if first < 0 {
					first = i
				}
				count++
			}
		}
		return first, count
	}
	return map[string]filter{
		"copy": {apply: func(a *args) any { return a.in }},
		"count": {params: params("value"), required: 1, apply: func(a *args) any {
			_, n := find(a)
			return int64(n)
		}},
		"index": {params: params("value"), required: 1, apply: func(a *args) any {
			i, _ := find(a)
			if i < 0 {
				panic(failf("index(): the value is not in the list"))
			}
			return int64(i)
		}},
	}
}

func buildStringMethods() map[string]filter {
	table := map[string]filter{
		"replace":    {params: params("old", "new", "count"), required: 2, apply: replaceFilter},
		"join":       {params: params("iterable"), required: 1, apply: joinMethod},
		"split":      {params: params("sep", "maxsplit"), apply: splitMethod},
		"rsplit":     {params: params("sep", "maxsplit"), apply: rsplitMethod},
		"splitlines": {params: params("keepends"), apply: splitlinesMethod},
		"partition":  {params: params("sep"), required: 1, apply: func(a *args) any { return partition(a, strings.Index) }},
		"rpartition": {params: params("sep"), required: 1, apply: func(a *args) any { return partition(a, strings.LastIndex) }},
		"format":     {variadic: true, apply: formatMethod},
		"swapcase":   {apply: func(a *args) any { return strings.Map(swapCase, a.text()) }},
		"casefold":   {apply: func(a *args) any { return strings.ReplaceAll(strings.ToLower(a.text()), "ß", "ss") }},
		"index":      {params: params("sub"), required: 1, apply: func(a *args) any { return mustFind(a, "index", strings.Index) }},
		"rindex":     {params: params("sub"), required: 1, apply: func(a *args) any { return mustFind(a, "rindex", strings.LastIndex) }},
		"istitle":    {apply: func(a *args) any { s := a.text(); return s == title(s) && s != strings.ToLower(s) }},
		"startswith": {params: params("prefix"), required: 1, apply: func(a *args) any { return affix(a, strings.HasPrefix) }},
		"endswith":   {params: params("suffix"), required: 1, apply: func(a *args) any { return affix(a, strings.HasSuffix) }},
		"removeprefix": {params: params("prefix"), required: 1, apply: func(a *args) any {
			return strings.TrimPrefix(a.text(), a.str(0, ""))
		}},
		"removesuffix": {params: params("suffix"), required: 1, apply: func(a *args) any {
			return strings.TrimSuffix(a.text(), a.str(0, ""))
		}},
		"find":   {params: params("sub"), required: 1, apply: func(a *args) any { return find(a, strings.Index) }},
		"rfind":  {params: params("sub"), required: 1, apply: func(a *args) any { return find(a, strings.LastIndex) }},
		"count":  {params: params("sub"), required: 1, apply: func(a *args) any { return int64(strings.Count(a.text(), a.str(0, ""))) }},
		"center": {params: params("width", "fillchar"), required: 1, apply: padMethod(alignCenter)},
		"ljust":  {params: params("width", "fillchar"), required: 1, apply: padMethod(alignLeft)},
		"rjust":  {params: params("width", "fillchar"), required: 1, apply: padMethod(alignRight)},
		"zfill":  {params: params("width"), required: 1, apply: zfillMethod},
		"strip": {params: params("chars"), apply: func(a *args) any {
			return strip(a, strings.TrimFunc, strings.Trim)
		}},
		"lstrip": {params: params("chars"), apply: func(a *args) any {
			return strip(a, strings.TrimLeftFunc, strings.TrimLeft)
		}},
		"rstrip": {params: params("chars"), apply: func(a *args) any {
			return strip(a, strings.TrimRightFunc, strings.TrimRight)
		}},
	}
	for _, name := range []string{"upper", "lower", "capitalize", "title"} {
		table[name] = filters()[name]
	}
	for name, class := range map[string]func(rune) bool{
		"isdigit": unicode.IsDigit, "isdecimal": unicode.IsDigit, "isnumeric": unicode.IsNumber,
		"isalpha": unicode.IsLetter, "isspace": unicode.IsSpace,
		"isalnum": func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) },
	} {
		table[name] = filter{apply: func(a *args) any {
			s := a.text()
			return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !class(r) })
		}}
	}
	table["isupper"] = tests()["upper"]
	table["islower"] = tests()["lower"]
	return table
}
