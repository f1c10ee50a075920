package secret

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func set() *Set {
	return New(map[string]any{
		"api_key": "sk-12345", "longer": "sk-12345-67", "pin": "42",
		"db": map[string]any{"password": "hunter2"},
	})
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
