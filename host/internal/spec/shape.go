package spec

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// shape describes the accepted values: one form or several, distinguished by the
// kind of the YAML value. The checker, the JSON Schema and the reference use it.
type shape struct {
	text     *textForm
	boolean  bool
	number   *numberForm
	duration time.Duration // the unit of a plain number; 0 = no duration
	positive bool          // a duration or number of 0 is not accepted
	list     *shape        // the shape of the elements
	minItems int           // for a list, and for free keys
	mapping  *section      // known keys
	entries  *shape        // free keys, each value of this shape
	anything bool
}

// textForm is a string. If scalar is set, it is also a number or a boolean, as
// written.
type textForm struct {
	enum   []string
	scalar bool
}

// numberForm is a number of at least min and, unless max is nil, at most max.
type numberForm struct {
	integer bool
	min     float64
	max     *float64
}

// The functions for shapes are not inlined, since the grammar calls them several hundred
// times and is built once.

//go:noinline
func str() *shape { return &shape{text: &textForm{}} }

//go:noinline
func written() *shape { return &shape{text: &textForm{scalar: true}} }

//go:noinline
func oneOf(words ...string) *shape { return &shape{text: &textForm{enum: words}} }

//go:noinline
func boolean() *shape { return &shape{boolean: true} }

//go:noinline
func seconds() *shape { return &shape{duration: time.Second} }

//go:noinline
func milliseconds() *shape { return &shape{duration: time.Millisecond} }

//go:noinline
func listOf(item *shape) *shape { return &shape{list: item} }

//go:noinline
func entriesOf(entry *shape) *shape { return &shape{entries: entry} }

//go:noinline
func object(s *section) *shape { return &shape{mapping: s} }

//go:noinline
func anything() *shape { return &shape{anything: true} }

//go:noinline
func anyMapping() *shape { return entriesOf(anything()) }

// integer is an integer of at least low, and at most high if given.
//
//go:noinline
func integer(low float64, high ...float64) *shape { return &shape{number: between(true, low, high)} }

//go:noinline
func number(low float64, high ...float64) *shape { return &shape{number: between(false, low, high)} }

func between(integer bool, low float64, high []float64) *numberForm {
	form := &numberForm{integer: integer, min: low}
	if len(high) > 0 {
		form.max = &high[0]
	}
	return form
}

// or combines the forms of two shapes for different kinds of values.
func (s *shape) or(other *shape) *shape {
	both := *s
	if other.text != nil {
		both.text = other.text
	}
	both.boolean = both.boolean || other.boolean
	if other.number != nil {
		both.number = other.number
	}
	if other.list != nil {
		both.list, both.minItems = other.list, other.minItems
	}
	if other.mapping != nil {
		both.mapping = other.mapping
	}
	if other.entries != nil {
		both.entries = other.entries
	}
	return &both
}

// requirePositive requires a duration or a number greater than 0.
func (s *shape) requirePositive() *shape {
	s.positive = true
	return s
}

// nonEmpty requires at least one element, or one free key.
func (s *shape) nonEmpty() *shape {
	s.minItems = 1
	return s
}

// kinds describes the accepted values for messages.
func (s *shape) kinds() string {
	var kinds []string
	add := func(holds bool, kind string) {
		if holds {
			kinds = append(kinds, kind)
		}
	}
	add(s.text != nil, source.String.String())
	add(s.boolean, source.Bool.String())
	add(s.number != nil && s.number.integer, source.Int.String())
	add(s.number != nil && !s.number.integer, source.Float.String())
	add(s.duration == time.Second, "a number of seconds")
	add(s.duration == time.Millisecond, "a number of milliseconds")
	add(s.list != nil, source.List.String())
	add(s.mapping != nil || s.entries != nil, source.Map.String())
	if n := len(kinds); n > 1 {
		return strings.Join(kinds[:n-1], ", ") + " or " + kinds[n-1]
	}
	return strings.Join(kinds, "")
}

// example returns a hint on how to write a value of the shape.
func (s *shape) example() string {
	var forms []string
	add := func(holds bool, form string) {
		if holds {
			forms = append(forms, form)
		}
	}
	add(s.text != nil, "a text")
	add(s.boolean, "true or false")
	if s.number != nil {
		forms = append(forms, s.number.kind())
	}
	add(s.duration > 0, "a time such as 30s")
	add(s.list != nil, "a list: [..., ...]")
	if s.mapping != nil {
		forms = append(forms, "a mapping: {"+s.mapping.keys[0].name+": ...}")
	}
	add(s.entries != nil && s.mapping == nil, "a mapping: {key: value}")
	return "write " + strings.Join(forms, ", or ")
}

// kind describes the accepted numbers.
func (f *numberForm) kind() string {
	kind := "a number"
	if f.integer {
		kind = "an integer"
	}
	if f.max != nil {
		return fmt.Sprintf("%s from %s to %s", kind, numeral(f.min), numeral(*f.max))
	}
	return fmt.Sprintf("%s from %s", kind, numeral(f.min))
}

// numeral formats a bound without an exponent.
func numeral(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// key is one key of a section.
type key struct {
	name    string
	aliases []string
	shape   *shape
	doc     string
	// fallback is the default value as shown in the reference.
	fallback string
	required bool
	// code is the diagnostic code of a value outside the enum; "" = the general one.
	code string
	use  paramUse
}

// paramUse is the meaning of a key when the parameters of a call are next to action:.
type paramUse uint8

const (
	asKey    paramUse = iota // the key of the node
	asParam                  // a parameter
	asEither                 // a parameter if the action has one of this name
)

// holdsCode reports whether a # is likely to be code: Lua's length operator.
func (k *key) holdsCode() bool {
	return slices.Contains([]string{"if", "when", "condition", "run"}, k.name)
}

func (k *key) spellings() []string { return append([]string{k.name}, k.aliases...) }

// section is a kind of mapping with known keys.
type section struct {
	// title is the name in messages: "node", "edge".
	title string
	doc   string
	keys  []*key
	// variants are the sections that replace this one, by the value of type.
	variants map[string]*section
	// named sections have a name, which is the prefix of messages.
	named bool
	// inlineParams treats unknown keys as parameters if there is action: but no
	// with:.
	inlineParams bool

	index map[string]*key
}

// kind returns the title without the variant.
func (s *section) kind() string {
	kind, _, _ := strings.Cut(s.title, " of type ")
	return kind
}

// find returns the key with a spelling, or nil.
func (s *section) find(spelling string) *key { return s.index[spelling] }

// spellings returns the spellings of all keys.
func (s *section) spellings() (all []string) {
	for _, k := range s.keys {
		all = append(all, k.spellings()...)
	}
	return all
}

// canonical returns the name of the key with a spelling, or the spelling
// itself.
func (s *section) canonical(spelling string) string {
	if k := s.find(spelling); k != nil {
		return k.name
	}
	return spelling
}

// variant returns the section that applies to a mapping.
func (s *section) variant(n *source.Node) *section {
	if kind := n.Get("type"); kind != nil && kind.Kind == source.String {
		if v := s.variants[kind.Text]; v != nil {
			return v
		}
	}
	return s
}

// takesParams reports whether unknown keys of a mapping are parameters.
func (s *section) takesParams(n *source.Node) bool {
	if !s.inlineParams || n.Get("action") == nil {
		return false
	}
	return !slices.ContainsFunc(n.Members, func(m source.Member) bool {
		k := s.findIn(n, m.Key.Text)
		return k != nil && k.name == "with"
	})
}

// findIn returns the key with a spelling in a mapping. Next to action: and other
// parameters, params is a parameter, as for graph.query, and not a spelling of
// with.
func (s *section) findIn(n *source.Node, spelling string) *key {
	k := s.find(spelling)
	if k == nil || spelling != "params" || !s.inlineParams || n.Get("action") == nil || n.Get("with") != nil || n.Get("config") != nil {
		return k
	}
	known := s.spellings()
	for _, m := range n.Members {
		if s.find(m.Key.Text) == nil && !free(m.Key.Text) && diag.Suggest(m.Key.Text, known) == "" {
			return nil
		}
	}
	return k
}

// free reports whether a key is custom.
func free(key string) bool { return strings.HasPrefix(key, "x-") }
