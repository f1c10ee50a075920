package secret

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A reference is NUL s NAME NUL, or NUL s NAME as FORM NUL for a secret that
// is encoded. A NUL that was in the text is doubled, so that no text from outside
// can pass for a reference.
const (
	escape = "\x00"
	inForm = " as "
)

func reference(name, as string) string {
	if as != "" {
		name += inForm + as
	}
	return escape + "s" + name + escape
}

// sealing is a text and the reference in its place.
type sealing struct{ text, reference string }

// sealer replaces texts by references, of two that begin at one place the
// longer, and of equal ones the first.
func sealer(list []sealing) *strings.Replacer {
	slices.SortStableFunc(list, func(a, b sealing) int { return cmp.Compare(len(b.text), len(a.text)) })
	pairs := make([]string, 0, 2*len(list)+2)
	for _, one := range list {
		pairs = append(pairs, one.text, one.reference)
	}
	return strings.NewReplacer(append(pairs, escape, escape+escape)...)
}

// Seal replaces secrets by references, for a checkpoint. v is not changed.
func (s *Set) Seal(v any) any {
	f := func(text string) string { return strings.ReplaceAll(text, escape, escape+escape) }
	if s != nil {
		f = s.sealText
	}
	out, _ := rewrite(v, f)
	return out
}

func (s *Set) sealText(text string) string {
	for _, l := range s.leaves {
		if len(l.text) < wholeOnly && l.text == text {
			return reference(l.name, "")
		}
	}
	return s.seal.Replace(text)
}

// MissingError is a reference to a secret that was not given.
type MissingError struct{ Name string }

// Error names the secret and says how to give it.
func (e *MissingError) Error() string {
	return fmt.Sprintf("the checkpoint refers to the secret %q; give it with --secrets or --secrets-env as in the first run", e.Name)
}

// Unseal resolves references; a [*MissingError] where a secret is not there.
// v is not changed.
func (s *Set) Unseal(v any) (any, error) {
	var missing *MissingError
	out, _ := rewrite(v, func(text string) string {
		if !strings.Contains(text, escape) {
			return text
		}
		plain, lost := s.unsealText(text)
		if lost != "" {
			missing = &MissingError{Name: lost}
		}
		return plain
	})
	if missing != nil {
		return nil, missing
	}
	return out, nil
}

func (s *Set) unsealText(text string) (plain, missing string) {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, escape)
		b.WriteString(before)
		switch {
		case !found:
			return b.String(), missing
		case strings.HasPrefix(rest, escape):
			b.WriteString(escape)
			text = rest[1:]
		case strings.HasPrefix(rest, "s"):
			name, after, _ := strings.Cut(rest[1:], escape)
			value, lost := s.find(name)
			if lost != "" {
				missing = lost
			}
			b.WriteString(value)
			text = after
		default:
			text = rest
		}
	}
}

// find gives what a reference stands for, or the name of the secret that is not
// there.
func (s *Set) find(name string) (text, missing string) {
	if text, ok := s.leafText(name); ok {
		return text, ""
	}
	at := strings.LastIndex(name, inForm)
	if at < 0 {
		return "", name
	}
	text, ok := s.leafText(name[:at])
	for _, f := range forms(text) {
		if ok && f.as == name[at+len(inForm):] {
			return f.text, ""
		}
	}
	return "", name[:at]
}

func (s *Set) leafText(name string) (string, bool) {
	if s != nil {
		for _, l := range s.leaves {
			if l.name == name {
				return l.text, true
			}
		}
	}
	return "", false
}
