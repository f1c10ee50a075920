package postgres

import (
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"

	"github.com/the-edge-agent/tea/plugins/memory/internal/engine/sandbox"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// checked is a workflow's query that can run between parentheses.
type checked struct {
	// sql has the parameters $1 to $n; args are their values.
	sql  string
	args []any
	// qualifiers are the names before dots, as the server folds them, with their offsets. A qualifier that is a schema
	// names a table or function outside of the sandbox.
	qualifiers map[string]int
}

// tokenKind is the kind of a token.
type tokenKind int

const (
	blank     tokenKind = iota // white space and comments
	word                       // names and keywords
	quotedID                   // names in double quotes
	parameter                  // $1, $name and ?
	opaque                     // strings, numbers, signs
)

// token returns the kind and the end of the token at an offset. Text that the server could read differently, such as
// strings with escapes, is an error.
func token(s string, at int) (kind tokenKind, end int, err error) {
	switch c := s[at]; {
	case strings.IndexByte(" \t\r\n\f", c) >= 0:
		return blank, at + 1, nil
	case strings.HasPrefix(s[at:], "--"):
		if i := strings.IndexAny(s[at:], "\r\n"); i >= 0 {
			return blank, at + i, nil
		}
		return blank, len(s), nil
	case strings.HasPrefix(s[at:], "/*"):
		end, err := comment(s, at)
		return blank, end, err
	case c == '\'', c == '"':
		end, closed := sandbox.QuoteEnd(s, at)
		switch {
		case !closed:
			return 0, 0, sandbox.Invalid(s, at, "the quote has no end")
		case c == '"':
			return quotedID, end, nil
		}
		return opaque, end, nil
	case c == '?':
		return parameter, at + 1, nil
	case c == '$':
		end := sandbox.WordEnd(s, at+1)
		if end == at+1 || strings.Contains(s[at+1:end], "$") {
			return 0, 0, sandbox.Invalid(s, at, "dollar-quoted strings are not allowed; use '...'")
		}
		return parameter, end, nil
	case c >= '0' && c <= '9':
		end := sandbox.WordEnd(s, at)
		for end < len(s) && s[end] == '.' {
			end = sandbox.WordEnd(s, end+1)
		}
		return opaque, end, nil
	case sandbox.IsWord(c):
		end := sandbox.WordEnd(s, at)
		if end < len(s) && (s[end] == '\'' || strings.HasPrefix(s[end:], `&"`) || strings.HasPrefix(s[end:], "&'")) {
			return 0, 0, sandbox.Invalid(s, at, "strings and names with a prefix, such as E'...', are not allowed; use '...'")
		}
		return word, end, nil
	case c < ' ', c == 0x7f, c == '\\':
		return 0, 0, sandbox.Invalid(s, at, "the query has the character "+strconv.QuoteRune(rune(c)))
	}
	return opaque, at + 1, nil
}

// comment returns the end of a comment, which can be nested.
func comment(s string, at int) (int, error) {
	depth := 0
	for i := at; i+1 < len(s); i++ {
		switch s[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				return i + 1, nil
			}
		}
	}
	return 0, sandbox.Invalid(s, at, "the comment has no end")
}

// checker reads a query token by token.
type checker struct {
	query  string
	bounds store.Sandbox
	out    strings.Builder
	result checked

	first, ended bool
	depth        int
	// before is the last word or sign, folded.
	before string
	// qualifier is the name before this token, and called the same name if it can be the name of a function. nameAt is
	// its offset.
	qualifier, called string
	nameAt            int
	numbers           map[string]int
}

// check restricts what a query can name; the server parses it. The text stays between the parentheses around it. Tables
// are limited to the sandbox, because the search path is empty and qualifiers are compared with the schemas. Functions
// are limited to a list. The read-only transaction prevents everything else.
func check(query string, bounds store.Sandbox) (checked, error) {
	if err := sandbox.Check(query); err != nil {
		return checked{}, err
	}
	c := &checker{query: query, bounds: bounds, numbers: map[string]int{}, result: checked{qualifiers: map[string]int{}}}
	for at := 0; at < len(query); {
		kind, end, err := token(query, at)
		if err == nil && kind != blank {
			err = c.add(kind, at, query[at:end])
		} else if err == nil {
			c.out.WriteString(query[at:end])
		}
		if err != nil {
			return checked{}, err
		}
		at = end
	}
	switch {
	case !c.first:
		return checked{}, tea.Errorf(tea.ValidationError, "the query is empty")
	case c.depth > 0:
		return checked{}, sandbox.Invalid(query, len(query), "a parenthesis is not closed")
	}
	used := map[string]bool{}
	for name := range c.numbers {
		used[name] = true
	}
	if err := sandbox.Arguments(bounds, used); err != nil {
		return checked{}, err
	}
	c.bind()
	c.result.sql = c.out.String()
	return c.result, nil
}

// bind orders the arguments by the numbers of their parameters.
func (c *checker) bind() {
	c.result.args = make([]any, len(c.numbers))
	for i, arg := range c.bounds.Args {
		name, v := sandbox.Named(arg)
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		c.result.args[c.numbers[name]-1] = v
	}
}

func (c *checker) add(kind tokenKind, at int, text string) error {
	if c.ended && text != ";" {
		return c.denied(at, "a second statement", "only a single SELECT is allowed")
	}
	folded := text
	switch kind {
	case word:
		folded = sandbox.Fold(text)
	case quotedID:
		folded = strings.ReplaceAll(text[1:len(text)-1], `""`, `"`)
	}
	if !c.first {
		c.first = true
		if kind != word || folded != "select" && folded != "with" && folded != "values" {
			return sandbox.Invalid(c.query, at, "a query begins with SELECT, WITH or VALUES, not with "+text)
		}
	}
	if err := c.sign(at, text); err != nil {
		return err
	}
	switch kind {
	case parameter:
		text = c.number(text)
	case word, quotedID:
		if err := c.named(kind, at, folded); err != nil {
			return err
		}
	}
	if kind != word && kind != quotedID {
		c.called, c.qualifier = "", ""
	}
	if c.before = text; kind == word {
		c.before = folded
	}
	if text != ";" {
		c.out.WriteString(text)
	}
	return nil
}

// sign reads a token that may be a sign.
func (c *checker) sign(at int, text string) error {
	switch text {
	case ";":
		c.ended = true
	case "(":
		c.depth++
		if c.called != "" && !functions()[c.called] {
			return c.denied(c.nameAt, "the function "+c.called, "it is not one of the functions that are allowed")
		}
	case ")":
		if c.depth--; c.depth < 0 {
			return sandbox.Invalid(c.query, at, "a parenthesis is not opened")
		}
	case ".":
		if _, seen := c.result.qualifiers[c.qualifier]; c.qualifier != "" && !seen {
			c.result.qualifiers[c.qualifier] = c.nameAt
		}
	}
	return nil
}

func (c *checker) named(kind tokenKind, at int, name string) error {
	switch {
	case strings.HasPrefix(strings.ToLower(name), "pg_"), strings.ToLower(name) == "information_schema":
		return c.denied(at, name, "the server's own names are not open to queries")
	case kind == word && refused()[name], refusedTypes()[name]: // a type can be quoted
		return c.denied(at, strings.ToUpper(name), "it is not part of what queries can use")
	}
	c.qualifier, c.called, c.nameAt = name, name, at
	// The name of a table or a WITH can be followed by a list of columns.
	if kind == word && keywords()[name] || c.before == "as" || c.before == "with" || c.before == "recursive" {
		c.called = ""
	}
	return nil
}

// number returns the number of a parameter, counted from 1.
func (c *checker) number(text string) string {
	name := text[1:]
	if text == "?" {
		name = strconv.Itoa(len(c.numbers) + 1)
	}
	if c.numbers[name] == 0 {
		c.numbers[name] = len(c.numbers) + 1
	}
	return "$" + strconv.Itoa(c.numbers[name])
}

func (c *checker) denied(at int, what, rule string) error {
	return sandbox.Denied(c.bounds, c.query, at, what, rule)
}

// refused are words with which a query reads more than its tables, or writes; refusedTypes are such types.
var (
	refused      = sandbox.Words(`current_catalog current_role current_schema current_user session_user system_user user into operator tablesample`)
	refusedTypes = sandbox.Words(`regclass regcollation regconfig regdictionary regnamespace regoper regoperator regproc regprocedure regrole regtype xml`)
)

// keywords are words before parentheses that are not functions.
var keywords = sandbox.Words(`all and any array as between by case cross distinct else except exists filter from group having ilike in inner intersect is
	join lateral left like limit materialized not natural offset on only or order outer over partition recursive right rollup rows select set sets similar
	some then to union using values when where window with within cube grouping full end asc desc fetch escape`)

// functions compute from their arguments, with results that are not much larger. Types can have a length.
var functions = sandbox.Words(`
	abs acos acosh age array_agg array_append array_cat array_dims array_length array_lower array_ndims array_position array_positions array_prepend
	array_remove array_replace array_to_json array_to_string array_upper ascii asin asinh atan atan2 atan2d atand atanh avg bit bit_and bit_length
	bit_or bool_and bool_or btrim cardinality cast cbrt ceil ceiling char char_length character character_length chr clock_timestamp coalesce concat
	concat_ws corr cos cosd cosh cot count covar_pop covar_samp cume_dist current_time current_timestamp date_bin date_part date_trunc decimal decode
	degrees dense_rank div encode every exp extract factorial first_value float floor gcd greatest initcap isfinite json_agg json_array_elements
	json_array_elements_text json_array_length json_build_array json_build_object json_each json_each_text json_extract_path json_extract_path_text
	json_object json_object_agg json_object_keys json_strip_nulls json_typeof jsonb_agg jsonb_array_elements jsonb_array_elements_text
	jsonb_array_length jsonb_build_array jsonb_build_object jsonb_each jsonb_each_text jsonb_extract_path jsonb_extract_path_text jsonb_object
	jsonb_object_agg jsonb_object_keys jsonb_path_exists jsonb_path_match jsonb_path_query jsonb_path_query_array jsonb_path_query_first jsonb_pretty
	jsonb_set jsonb_strip_nulls jsonb_typeof justify_days justify_hours justify_interval lag last_value lcm lead least left length ln localtime
	localtimestamp log log10 lower ltrim make_date make_interval make_time make_timestamp make_timestamptz max md5 min mod mode normalize now
	nth_value ntile nullif num_nonnulls num_nulls numeric octet_length overlay percent_rank percentile_cont percentile_disc pi position power
	quote_ident quote_literal quote_nullable radians random rank regexp_match regexp_matches regexp_replace regexp_split_to_array
	regexp_split_to_table replace reverse right round row row_number row_to_json rtrim scale sha256 sign sin sind sinh split_part sqrt
	starts_with statement_timestamp stddev stddev_pop stddev_samp string_agg string_to_array strpos substr substring sum tan tand tanh time
	timestamp timestamptz to_char to_date to_hex to_json to_jsonb to_number to_timestamp transaction_timestamp translate trim trim_scale trunc
	unnest upper var_pop var_samp varchar variance width_bucket interval
`)
