package secret

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
)

// pem has everything that encodings change.
const pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSj\"AgEAAoIB\\AQC7VJTUt9Us8cKj\n-----END KEY-----\n"

func jsonOf(t testing.TB, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// stream returns a text that is masked in pieces of the given sizes, over and
// over, and the longest part that was held back.
func stream(s *Set, text string, sizes ...int) (masked string, held int) {
	st := s.Stream()
	var b strings.Builder
	for i := 0; text != ""; i++ {
		n := min(sizes[i%len(sizes)], len(text))
		b.WriteString(st.Next(text[:n]))
		held = max(held, len(st.held))
		text = text[n:]
	}
	b.WriteString(st.End())
	return b.String(), held
}

func TestEveryEncodingIsMaskedAndSealed(t *testing.T) {
	t.Parallel()
	secrets := map[string]string{"pem": pem, "path": `C:\new\table.txt`, "slash": `p"a\ss/w0rd-Zq7+9`, "quote": `say "hi" & <b>`, "percent": "100%41 of 5%", "accent": "pässwörd-ключ-🔑", "token": "token-1234"}
	given := map[string]any{}
	for name, text := range secrets {
		given[name] = text
	}
	s := New(given, nil)
	nested := func(text string, depth int) string {
		for range depth {
			text = jsonOf(t, map[string]any{"content": text})
		}
		return text
	}
	ascii := func(text string) string {
		var b strings.Builder
		for _, r := range jsonOf(t, text) {
			if r < 0x80 {
				b.WriteRune(r)
			} else if r > 0xffff {
				fmt.Fprintf(&b, `\u%04X\u%04X`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
			} else {
				fmt.Fprintf(&b, `\u%04X`, r)
			}
		}
		return b.String()
	}
	for name, text := range secrets {
		for how, out := range map[string]string{
			"plain":                    text,
			"JSON":                     nested(text, 1),
			"JSON in JSON":             nested(text, 2),
			"six times":                nested(text, 6),
			"ASCII JSON":               ascii(text),
			"ASCII JSON in JSON":       jsonOf(t, ascii(text)),
			"slashes":                  strings.ReplaceAll(nested(text, 2), "/", `\/`),
			"query":                    url.QueryEscape(text),
			"lower case":               strings.ToLower(url.QueryEscape("%")) + strings.ReplaceAll(url.PathEscape(text), "%5C", "%5c"),
			"query of JSON":            url.QueryEscape(nested(text, 2)),
			"twice in a query":         url.QueryEscape(url.QueryEscape(text)),
			"Go":                       fmt.Sprintf("%q", text),
			"Go of JSON":               fmt.Sprintf("%q", nested(text, 1)),
			"Base64":                   base64.StdEncoding.EncodeToString([]byte(text)),
			"Base64 in a query":        url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(text))),
			"Base64 of JSON":           base64.StdEncoding.EncodeToString([]byte(jsonOf(t, []any{text}))),
			"Base64 of JSON in JSON":   base64.StdEncoding.EncodeToString([]byte(nested(text, 2))),
			"Base64 of nested JSON":    base64.URLEncoding.EncodeToString([]byte(nested(text, 3))),
			"Base64 of a query":        base64.StdEncoding.EncodeToString([]byte("u=" + url.QueryEscape(text))),
			"Base64 of a path":         base64.RawURLEncoding.EncodeToString([]byte("https://x/" + url.PathEscape(text))),
			"Base64 of a filter":       base64.StdEncoding.EncodeToString([]byte("u=" + strings.ReplaceAll(strings.ReplaceAll(url.QueryEscape(text), "+", "%20"), "%2F", "/"))),
			"Base64 in Base64":         base64.StdEncoding.EncodeToString([]byte(`{"auth":"` + base64.StdEncoding.EncodeToString([]byte("user:"+text)) + `"}`)),
			"Base64 in Base64 for URL": base64.RawURLEncoding.EncodeToString([]byte("a." + base64.RawURLEncoding.EncodeToString([]byte("u:"+text)))),
			"behind a backslash":       `DOMAIN\` + text,
			"behind one, in JSON":      nested(`DOMAIN\`+text, 2),
		} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				in := "before " + out + " after"
				got := s.Text(in)
				if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || strings.Contains(got, text[2:8]) || !strings.Contains(got, Mask) {
					t.Errorf("masked: %s", got)
				}
				sealed := s.Seal(in).(string)
				if rest := strings.ReplaceAll(sealed, "\x00", ""); strings.Contains(rest, text[2:8]) {
					t.Errorf("sealed: %q", sealed)
				}
				if back, err := s.Unseal(sealed); err != nil || back != in {
					t.Errorf("unsealed: %q, %v\nwant %q", back, err, in)
				}
				for _, sizes := range [][]int{{1}, {3, 7}, {len(in)}} {
					if inPieces, _ := stream(s, in, sizes...); inPieces != got {
						t.Errorf("in pieces of %d: %s\nwant %s", sizes, inPieces, got)
					}
				}
			})
		}
	}
}

func TestLinesOfASecretAreMaskedAndSealed(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"pem": pem}, nil)
	lines := strings.Split(pem, "\n")
	in := "<" + lines[1] + ">"
	if got := s.Text(in); got != "<***>" {
		t.Errorf("masked: %s", got)
	}
	if got := s.Text(jsonOf(t, jsonOf(t, lines[2]))); got != `"\"***\""` {
		t.Errorf("masked in JSON: %s", got)
	}
	sealed := s.Seal(in)
	if strings.Contains(sealed.(string), lines[1][:8]) {
		t.Errorf("sealed: %q", sealed)
	}
	if back, err := s.Unseal(sealed); err != nil || back != in {
		t.Errorf("unsealed: %v, %v", back, err)
	}
	_, err := New(map[string]any{"pem": "another value"}, nil).Unseal(sealed)
	if err == nil || !strings.Contains(err.Error(), `the secret "pem", whose value has changed`) {
		t.Errorf("with another secret: %v", err)
	}
}

func TestNumberIsSealedAsNumber(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"pin": int64(482915)}, nil)
	sealed := s.Seal([]any{int64(482915), "482915", int64(1)})
	if text := fmt.Sprintf("%q", sealed); strings.Contains(text, "482915") {
		t.Errorf("sealed: %s", text)
	}
	back, err := s.Unseal(sealed)
	if err != nil || fmt.Sprintf("%#v", back) != `[]interface {}{482915, "482915", 1}` {
		t.Errorf("unsealed: %#v, %v", back, err)
	}
}

func TestSecretSplitOverPiecesIsMasked(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"word": "TOPSECRETVALUE", "inner": "SECRETVALUES-2"}, nil)
	for _, c := range []struct {
		pieces []string
		want   []string
	}{
		{[]string{"a TOPSEC", "RETVALUE b"}, []string{"a ", "*** b"}},
		{[]string{"a TOP", "OLOGY"}, []string{"a ", "TOPOLOGY"}},
		{[]string{"plain", " word"}, []string{"plain", " word"}},
		{[]string{"TOPSECRETVALUE", "S-2 x"}, []string{"***", " x"}},
		{[]string{"TOPSECRETVALUE", " x"}, []string{"***", " x"}},
		{[]string{"ends in TOPSECRET"}, []string{"ends in ", "***"}},
		{[]string{"ends in TOP"}, []string{"ends in ", "TOP"}},
		{[]string{`\`, `n`}, []string{"", `\n`}},
		{[]string{"T", "O", "P", "S"}, []string{"", "", "", "", "TOPS"}},
	} {
		st := s.Stream()
		var got []string
		for _, p := range c.pieces {
			got = append(got, st.Next(p))
		}
		if end := st.End(); end != "" {
			got = append(got, end)
		}
		if fmt.Sprintf("%q", got) != fmt.Sprintf("%q", c.want) {
			t.Errorf("%q: got %q, want %q", c.pieces, got, c.want)
		}
	}
}

func TestIncompleteCharacterWaitsForTheNextPiece(t *testing.T) {
	t.Parallel()
	for _, s := range []*Set{nil, New(map[string]any{"pw": "p\"w\u00f6rd-\u65e5\u672c-Zq"}, nil)} {
		st := s.Stream()
		var got []string
		for _, piece := range []string{"x\xe6", "\x97", "\xa5y", "\xf0\x9f", "\x92\xa1", "\xff", "\xe6"} {
			got = append(got, st.Next(piece))
		}
		got = append(got, st.End())
		if want := []string{"x", "", "\u65e5y", "", "\U0001f4a1", "\xff", "", "\xe6"}; fmt.Sprintf("%q", got) != fmt.Sprintf("%q", want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestStreamHoldsNoMoreThanASecret(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"a": strings.Repeat("a", 20) + "b", "b": "abababab"}, nil)
	for _, text := range []string{strings.Repeat("a", 5000), strings.Repeat("ab", 5000), strings.Repeat(`\`, 5000), strings.Repeat("%25", 5000), strings.Repeat(`\u00`, 5000)} {
		if _, held := stream(s, text, 3); held > mostEscape+8 {
			t.Errorf("%.6s...: held %d bytes", text, held)
		}
	}
}

// FuzzStream compares a text masked in pieces with the text masked as a whole.
func FuzzStream(f *testing.F) {
	f.Add("x TOPSECRET\\n y", uint64(1))
	f.Add(`{"a":"{\"b\":\"say \\\"hi\\\" now\"}"} %22hi%22`, uint64(2))
	s := New(map[string]any{"a": "TOPSECRET\nline two is long", "b": `say "hi" now`, "c": `new\nab`, "d": "abcabcabd"}, nil)
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		st := s.Stream()
		rnd := rand.New(rand.NewPCG(seed, 0))
		var b strings.Builder
		for left := text; left != ""; {
			n := 1 + rnd.IntN(min(len(left), 9))
			b.WriteString(st.Next(left[:n]))
			left = left[n:]
		}
		b.WriteString(st.End())
		for _, secret := range []string{"TOPSECRET\nline two is long", "line two is long", `say "hi" now`, `new\nab`, "abcabcabd", `say \"hi\" now`, `say \\\"hi\\\" now`} {
			if strings.Contains(b.String(), secret) {
				t.Errorf("leaks %q: %q", secret, b.String())
			}
		}
		if strings.TrimLeft(text, "-_0123456789 ") == "" && b.String() != text {
			t.Errorf("changed %q to %q", text, b.String())
		}
		if back, err := s.Unseal(s.Seal(text)); err != nil || back != text {
			t.Errorf("sealed and unsealed: %q, %v; want %q", back, err, text)
		}
	})
}

func benchmarkSet() *Set {
	secrets := map[string]any{"pem": strings.Repeat(pem, 12)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range 19 {
		raw := make([]byte, 30)
		for j := range raw {
			raw[j] = byte(rnd.Uint32())
		}
		secrets[fmt.Sprint("key", i)] = "sk-" + base64.StdEncoding.EncodeToString(raw)
	}
	return New(secrets, nil)
}

func BenchmarkText(b *testing.B) {
	s := benchmarkSet()
	prose := strings.Repeat("The quick brown fox asks sk-the lazy dog for a token of 42.\n", 1<<20/60)
	for name, text := range map[string]string{
		"prose": prose, "json": jsonOf(b, prose), "json in json": jsonOf(b, jsonOf(b, prose)),
		"prefixes": strings.Repeat("sk-sk-", 1<<20/6), "escapes": strings.Repeat(`\n\"`, 1<<20/4),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				s.Text(text)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	st := benchmarkSet().Stream()
	b.ReportAllocs()
	for b.Loop() {
		st.Next(" token")
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		benchmarkSet()
	}
}
