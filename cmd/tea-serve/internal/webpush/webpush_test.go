package webpush

import (
	"crypto/ecdh"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

// The example of RFC 8291, appendix A.
func TestEncrypt(t *testing.T) {
	t.Parallel()
	read := func(text string) []byte {
		t.Helper()
		b, err := decode(text)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	own, err := ecdh.P256().NewPrivateKey(read("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ecdh.P256().NewPublicKey(read("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := encrypt([]byte("When I grow up, I want to be a watermelon"), public, read("BTBZMqHH6r4Tts7J_aSIgg"), own, read("DGv6ra1nlYgDCS1FRnbzlw"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
	if diff := cmp.Diff(want, encode(got)); diff != "" {
		t.Error(diff)
	}
	if _, err := encrypt(make([]byte, MaxText+1), public, read("BTBZMqHH6r4Tts7J_aSIgg"), own, read("DGv6ra1nlYgDCS1FRnbzlw")); err == nil {
		t.Error("a message that services refuse is encrypted")
	}
	if got, err := encrypt(make([]byte, MaxText), public, read("BTBZMqHH6r4Tts7J_aSIgg"), own, read("DGv6ra1nlYgDCS1FRnbzlw")); err != nil || len(got) != 4096 {
		t.Errorf("the largest message: %d bytes, %v", len(got), err)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewSender(key, "mailto:a@example.com", &safenet.Guard{Remedy: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	good := Keys{P256DH: s.PublicKey(), Auth: "BTBZMqHH6r4Tts7J_aSIgg=="}
	for _, c := range []struct {
		Subscription
		want string
	}{
		{Subscription{"https://push.example/a", good}, ""},
		{Subscription{"https://8.8.8.8:8443/a", good}, ""},
		{Subscription{"http://push.example/a", good}, "endpoint: expected the https:// address of a push service"},
		{Subscription{"https://a:b@push.example/a", good}, "endpoint: expected the https:// address of a push service"},
		{Subscription{"https:push.example", good}, "endpoint: expected the https:// address of a push service"},
		{Subscription{"", good}, "endpoint: expected the https:// address of a push service"},
		{Subscription{"https://127.0.0.1/a", good}, "endpoint: 127.0.0.1 is not a public address; ask"},
		{Subscription{"https://[::ffff:10.0.0.1]/a", good}, "endpoint: ::ffff:10.0.0.1 is not a public address; ask"},
		{Subscription{"https://push.example/a", Keys{"AAAA", good.Auth}}, "keys.p256dh: expected a public key of P-256 as base64url"},
		{Subscription{"https://push.example/a", Keys{good.P256DH, "AAAA"}}, "keys.auth: expected 16 bytes as base64url"},
	} {
		got := ""
		if err := s.Check(c.Subscription); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q, want %q", c.Subscription, got, c.want)
		}
	}
}
