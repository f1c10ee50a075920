package secret

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/value"
)

func set() *Set {
	return New(map[string]any{
		"api_key": "sk-12345", "longer": "sk-12345-67", "pin": "42",
		"db": map[string]any{"password": "hunter2"},
	}, nil)
}

func TestRedactMasksEverywhere(t *testing.T) {
	t.Parallel()
	in := map[string]any{
		"header": "Bearer sk-12345", "both": "sk-12345-67/hunter2", "pin": "42", "n": int64(42), "year": "2042",
		"list": []any{"x", map[string]any{"hunter2": true}},
	}
	want := map[string]any{
		"header": "Bearer ***", "both": "***/***", "pin": "***", "n": int64(42), "year": "2042",
		"list": []any{"x", map[string]any{"***": true}},
	}
	if diff := cmp.Diff(want, set().Redact(in)); diff != "" {
		t.Error(diff)
	}
	if in["header"] != "Bearer sk-12345" {
		t.Error("the value given was changed")
	}
}

func TestNumberThatIsASecretIsMasked(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"pin": int64(482915), "short": int64(7)}, nil)
	got := s.Redact(map[string]any{"list": []any{int64(482915), int64(7), 482915.5}, "text": "code 482915"})
	want := map[string]any{"list": []any{"***", int64(7), 482915.5}, "text": "code ***"}
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Error(diff)
	}
}

func TestSecretOfDigitsIsMaskedAsNumber(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"pin": "482915", "short": "7", "word": "hunter2"}, nil)
	got := s.Redact([]any{int64(482915), int64(7), 482915.5, "482915"})
	if diff := cmp.Diff(any([]any{"***", int64(7), 482915.5, "***"}), got); diff != "" {
		t.Error(diff)
	}
}

func TestEncodedSecretIsMasked(t *testing.T) {
	t.Parallel()
	const secret = "p\"s/w+\u00f6r & d\n<1>"
	s := New(map[string]any{"key": secret, "db": "hunter2"}, nil)
	inJSON, err := json.Marshal(map[string]any{"k": secret})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"JSON":                  {string(value.AppendString(nil, secret)), `"***"`},
		"JSON, HTML escaped":    {string(inJSON), `{"k":"***"}`},
		"query":                 {"http://x/?q=" + url.QueryEscape(secret), "http://x/?q=***"},
		"path":                  {"http://x/" + url.PathEscape(secret) + "/y", "http://x/***/y"},
		"Base64":                {base64.StdEncoding.EncodeToString([]byte(secret)), "***"},
		"Base64 for URLs":       {base64.RawURLEncoding.EncodeToString([]byte(secret)), "***"},
		"hexadecimal":           {hex.EncodeToString([]byte(secret)), "***"},
		"Basic authentication":  {base64.StdEncoding.EncodeToString([]byte("me:hunter2")), "bWU6***"},
		"Base64, second byte":   {base64.StdEncoding.EncodeToString([]byte("u:hunter2 and more")), "dTp***IGFuZCBtb3Jl"},
		"what only looks alike": {"aHVudGVy", "aHVudGVy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.Text(c.text); got != c.want {
				t.Errorf("Text(%q) = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

func TestBeginningOfASecretIsMasked(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"key": "s3cr\"t-key-that-is-long\x01", "other": "s3cr\"t-other"}, nil)
	for text, want := range map[string]string{
		`got str ("s3cr\"t-key-th...)`:          `got str ("***...)`,
		`got "s3cr\"t-key-"... and s3cr...`:     `got "***"... and ***...`,
		`got "s3cr\` + "\u2026":                 `got "***` + "\u2026",
		`s3c... s3cr: no end, the text goes on`: `s3c... s3cr: no end, the text goes on`,
		`"s3cr\"t-key-that-is-long\x01"`:        `"***"`,
		`... nothing`:                           `... nothing`,
	} {
		if got := s.Text(text); got != want {
			t.Errorf("Text(%s) = %s, want %s", text, got, want)
		}
	}
}

func TestSealRoundTrip(t *testing.T) {
	t.Parallel()
	in := map[string]any{"a": "key sk-12345, pin", "b": "42", "nul": "x\x00y", "forged": "\x00sapi_key\x00", "n": int64(1)}
	sealed := set().Seal(in)
	if text := sealed.(map[string]any)["a"]; text != "key \x00sapi_key\x00, pin" {
		t.Errorf("sealed = %q", text)
	}
	back, err := set().Unseal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(any(in), back); diff != "" {
		t.Error(diff)
	}
}

func TestEncodedSecretsAreSealed(t *testing.T) {
	t.Parallel()
	const key = "-----BEGIN <KEY>-----\na+b/c d?\"\u00e9"
	s := New(map[string]any{"pem": key}, nil)
	for _, f := range forms(key) {
		in := "before:" + f.text + ";after"
		sealed := s.Seal(in)
		if text := sealed.(string); strings.Contains(text, f.text) || strings.Contains(text, key[8:16]) {
			t.Errorf("%s: sealed = %q", f.as, text)
		}
		if back, err := s.Unseal(sealed); err != nil || back != in {
			t.Errorf("%s: got %q, %v; want %q", f.as, back, err, in)
		}
		var missing *MissingError
		if _, err := New(map[string]any{"other": "sk-12345"}, nil).Unseal(sealed); !errors.As(err, &missing) || missing.Name != "pem" {
			t.Errorf("%s: without the secret: %v", f.as, err)
		}
	}
	// Another secret of that name is put where the old one was, as it was encoded.
	back, err := New(map[string]any{"pem": "n&w"}, nil).Unseal(s.Seal(hex.EncodeToString([]byte(key)) + " " + url.QueryEscape(key)))
	if want := hex.EncodeToString([]byte("n&w")) + " n%26w"; err != nil || back != want {
		t.Errorf("renewed: %q, %v; want %q", back, err, want)
	}
}

func TestNameThatLooksLikeAForm(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"key as hex": "sk-12345", "key": "pk-67890"}, nil)
	in := "sk-12345 pk-67890 " + hex.EncodeToString([]byte("sk-12345"))
	if back, err := s.Unseal(s.Seal(in)); err != nil || back != in {
		t.Errorf("got %q, %v; want %q", back, err, in)
	}
}

func TestForgedReferenceStaysText(t *testing.T) {
	t.Parallel()
	forged := "\x00sapi_key\x00"
	var none *Set
	back, err := set().Unseal(none.Seal(forged))
	if err != nil || back != forged {
		t.Errorf("got %q, %v", back, err)
	}
}

func TestUnsealNamesMissingSecret(t *testing.T) {
	t.Parallel()
	var none *Set
	_, err := none.Unseal(set().Seal("sk-12345"))
	var missing *MissingError
	if !errors.As(err, &missing) || missing.Name != "api_key" {
		t.Errorf("err = %v", err)
	}
}

func TestNamesThatLookAlikeAreDifferentReferences(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]map[string]any{
		"period":  {"mail.password": "AAAAsecret1", "mail": map[string]any{"password": "BBBBsecret2"}},
		"bracket": {"k[0]": "AAAAsecret1", "k": []any{"BBBBsecret2"}},
		"form":    {"x as json": "AAAA\nsecret1", "x": "BBBB\nsecret2"},
		"quote":   {`x"] as json`: "AAAA\nsecret1", "x": "BBBB\nsecret2", `["x"]`: "CCCC\nsecret3"},
		"control": {"x\x00": "AAAA\nsecret1", "x": "BBBB\nsecret2"},
		"nested":  {"a": map[string]any{"b as json": "AAAA\nsecret1", "b": "BBBB\nsecret2"}},
		"setting": {"settings": map[string]any{"llm": map[string]any{"api_key": "AAAAsecret1"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New(given, map[string]any{"settings.llm.api_key": "HHHHsecret4"})
			in := []any{"HHHHsecret4"}
			for _, text := range []string{"AAAAsecret1", "BBBBsecret2", "AAAA\nsecret1", "BBBB\nsecret2", "CCCC\nsecret3"} {
				in = append(in, text, inJSON(text), hex.EncodeToString([]byte(text)))
			}
			back, err := s.Unseal(s.Seal(in))
			if diff := cmp.Diff(any(in), back); diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

func TestReferencesOfOldCheckpoints(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"mail.password": "se\ncret-1", "x as json": "se\ncret-2", "db": map[string]any{"p.q": "secret-3"}}, nil)
	in := []any{"\x00smail.password\x00", "\x00smail.password as json\x00", "\x00sx as json\x00", "\x00sdb.p.q\x00"}
	back, err := s.Unseal(in)
	if diff := cmp.Diff(any([]any{"se\ncret-1", `se\ncret-1`, "se\ncret-2", "secret-3"}), back); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestGivenSecretNamesTheReference(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"tok": "sk-12345"}, map[string]any{"settings.llm.api_key": "sk-12345"})
	if got := s.Seal("sk-12345"); got != "\x00stok\x00" {
		t.Errorf("sealed: %q", got)
	}
	var none *Set
	_, err := none.Unseal(New(map[string]any{"mail.password": "sk-12345"}, nil).Seal("sk-12345"))
	if want := `the checkpoint refers to the secret ["mail.password"]; pass it with --secrets or --secrets-env as in the first run`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestNumberSecretIsMaskedInEveryTypeOfNumber(t *testing.T) {
	t.Parallel()
	s := New(map[string]any{"pin": int64(987654321012), "card": "4929123456781234567", "zeros": "00765432", "pi": 3.14159265, "huge": "123456789012345678901234", "short": "0001"}, nil)
	card := float64(int64(4929123456781234567))
	for _, v := range []any{
		int64(987654321012), 987654321012.0, card, int64(4929123456781234567), int64(card),
		int64(765432), 765432.0, 3.14159265, 123456789012345678901234.0, json.Number("123456789012345678901234"),
		"9.87654321012e+11", fmt.Sprint(card),
	} {
		if got := s.Redact([]any{v}); !cmp.Equal(got, any([]any{Mask})) {
			t.Errorf("%#v: masked as %v", v, got)
		}
		sealed := s.Seal([]any{v})
		if cmp.Equal(sealed, any([]any{v})) {
			t.Errorf("%#v is not sealed", v)
		}
		if back, err := s.Unseal(sealed); err != nil || !cmp.Equal(back, any([]any{v})) {
			t.Errorf("%#v: unsealed as %#v, %v", v, back, err)
		}
	}
	for _, v := range []any{int64(1), 1.0, int64(3), 3.0} {
		if got := s.Redact(v); got != v {
			t.Errorf("%#v: masked as %v", v, got)
		}
	}
}
