package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A reference is NUL s NAME NUL, or NUL s NAME as FORM NUL for an encoded secret. A
// NUL of the text is doubled, so that no other text can look like a reference.
const (
	escape = "\x00"
	inForm = " as "
	// asPart is the form of an encoding without a name, such as one line of a
	// secret: the text itself, encrypted with the secret.
	asPart = "part "
)

func reference(name, as string) string {
	if as != "" {
		name += inForm + as
	}
	return escape + "s" + name + escape
}

// references matches a reference in JSON text.
var references = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\\u0000s(?:[^\\]|\\[^u])*\\u0000`) })

// MaskJSON returns JSON text with [Mask] in place of references.
func MaskJSON(text []byte) []byte { return references().ReplaceAllLiteral(text, []byte(Mask)) }

// Seal replaces secrets by references, for a checkpoint. It does not change v.
func (s *Set) Seal(v any) any {
	if s == nil {
		out, _ := rewrite(v, escapeNUL, func(v any) any { return v })
		return out
	}
	out, _ := rewrite(v, s.sealText, s.sealNumber)
	return out
}

func escapeNUL(text string) string { return strings.ReplaceAll(text, escape, escape+escape) }

func (s *Set) sealText(text string) string {
	if name, is := s.shortSecret(text); is {
		return reference(name, "")
	}
	regions, _ := s.find(text, complete)
	return replace(text, regions, func(r region) string { return s.sealRegion(text[r.start:r.end], r.owner) }, escapeNUL)
}

func (s *Set) sealRegion(text string, owner int32) string {
	if ref, known := s.references[text]; known {
		return ref
	}
	l := s.leaves[owner]
	if strings.Contains(text, `\\`) {
		for _, f := range nestedForms(l.text) {
			if f.text == text {
				return reference(l.name, f.as)
			}
		}
	}
	seal, nonce := partSeal(l.text, text)
	sealed := seal.Seal(nonce, nonce, []byte(text), nil)
	return reference(l.name, asPart+base64.RawStdEncoding.EncodeToString(sealed))
}

func (s *Set) sealNumber(v any) any {
	if ref, is := s.numbers[numberText(v)]; is {
		return ref
	}
	return v
}

// partSeal returns the cipher for parts of a secret, and the nonce for one.
// Equal parts are sealed equally, so that equal runs have equal checkpoints.
func partSeal(secret, text string) (seal cipher.AEAD, nonce []byte) {
	key := sha256.Sum256([]byte("tea checkpoint part\x00" + secret))
	block, err := aes.NewCipher(key[:])
	if err == nil {
		seal, err = cipher.NewGCM(block)
	}
	if err != nil {
		panic(err) // the key has the right length
	}
	digest := sha256.Sum256(append(key[:], text...))
	return seal, digest[:seal.NonceSize()]
}

// MissingError reports a reference to a secret that is missing, or that has changed
// if a part of the original value is needed.
type MissingError struct {
	Name    string
	Changed bool
}

// Error names the secret and how to pass it.
func (e *MissingError) Error() string {
	if e.Changed {
		return fmt.Sprintf("the checkpoint contains a part of the secret %s, whose value has changed; pass the value of the first run", e.Quoted())
	}
	return fmt.Sprintf("the checkpoint refers to the secret %s; pass it with --secrets or --secrets-env as in the first run", e.Quoted())
}

// Quoted returns the name in quotes: "db.password", or ["mail.password"] for a name
// that contains a period.
func (e *MissingError) Quoted() string {
	if strings.Contains(e.Name, `"`) {
		return e.Name
	}
	return strconv.Quote(e.Name)
}

// Setting reports whether the secret is a setting.
func (e *MissingError) Setting() bool { return strings.HasPrefix(e.Name, settingsKey+".") }

// Unseal resolves references; the error is a [*MissingError] if a secret is
// missing. It does not change v.
func (s *Set) Unseal(v any) (any, error) {
	u := unsealer{set: s}
	out := u.value(v)
	if u.missing != nil {
		return nil, u.missing
	}
	return out, nil
}

// unsealer records the first missing secret.
type unsealer struct {
	set     *Set
	missing *MissingError
}

// value is rewrite, except that a string can become a number.
func (u *unsealer) value(v any) any {
	switch v := v.(type) {
	case string:
		if inner, ok := strings.CutPrefix(v, escape+"s"); ok && strings.IndexByte(inner, 0) == len(inner)-1 {
			if l, as, _ := u.set.leafOf(inner[:len(inner)-1]); as != "" {
				for _, n := range numbersOf(l.text) {
					if n.as == as {
						return n.number
					}
				}
			}
		}
		return u.text(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = u.value(e)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[u.text(k)] = u.value(e)
		}
		return out
	}
	return v
}

func (u *unsealer) text(text string) string {
	if !strings.Contains(text, escape) {
		return text
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(text, escape)
		b.WriteString(before)
		switch {
		case !found:
			return b.String()
		case strings.HasPrefix(rest, escape):
			b.WriteString(escape)
			text = rest[1:]
		case strings.HasPrefix(rest, "s"):
			name, after, _ := strings.Cut(rest[1:], escape)
			b.WriteString(u.resolve(name))
			text = after
		default:
			text = rest
		}
	}
}

// resolve returns the value of a reference.
func (u *unsealer) resolve(ref string) string {
	l, as, ok := u.set.leafOf(ref)
	if !ok {
		u.missing = &MissingError{Name: l.name}
		return ""
	}
	if as == "" {
		return l.text
	}
	if sealed, is := strings.CutPrefix(as, asPart); is {
		return u.part(l.name, l.text, sealed)
	}
	for _, f := range append(forms(l.text), nestedForms(l.text)...) {
		if f.as == as {
			return f.text
		}
	}
	return l.text // the form equals the plain text
}

func (u *unsealer) part(name, secret, sealed string) string {
	seal, nonce := partSeal(secret, "")
	raw, err := base64.RawStdEncoding.DecodeString(sealed)
	if err == nil && len(raw) >= len(nonce) {
		var text []byte
		if text, err = seal.Open(nil, raw[:len(nonce)], raw[len(nonce):], nil); err == nil {
			return string(text)
		}
	}
	u.missing = &MissingError{Name: name, Changed: true}
	return ""
}

// leafOf returns the leaf and the form of a reference, or only the name of the leaf
// if it does not exist. A form never contains a quote, which distinguishes it from a
// part of a name.
func (s *Set) leafOf(ref string) (l leaf, as string, ok bool) {
	name := ref
	if at := strings.LastIndex(ref, inForm); at >= 0 && !strings.Contains(ref[at:], `"`) {
		name, as = ref[:at], ref[at+len(inForm):]
	}
	if s == nil {
		return leaf{name: name}, as, false
	}
	leaves := slices.Concat(s.leaves, s.short)
	if i := slices.IndexFunc(leaves, func(l leaf) bool { return l.name == name }); i >= 0 {
		return leaves[i], as, true
	}
	if i := slices.IndexFunc(leaves, func(l leaf) bool { return l.old == ref }); i >= 0 {
		return leaves[i], "", true
	}
	if i := slices.IndexFunc(leaves, func(l leaf) bool { return l.old == name }); i >= 0 {
		return leaves[i], as, true
	}
	return leaf{name: name}, as, false
}
