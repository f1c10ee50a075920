package bundles

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	"aead.dev/minisign"

	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// Key is a public key of minisign. The zero value is not valid.
type Key struct{ public minisign.PublicKey }

// String returns the key as minisign prints it ("RW..."), which [ParseKey]
// reads.
func (k Key) String() string { return k.public.String() }

// ID returns the key's ID as minisign prints it.
func (k Key) ID() string { return fmt.Sprintf("%016X", k.public.ID()) }

// ParseKey reads a public key: the text itself ("RW...") or the path of a file
// with it.
func ParseKey(given string) (Key, error) {
	var k Key
	if err := k.public.UnmarshalText([]byte(given)); err == nil {
		return k, k.check()
	}
	data, err := confine.ReadRegular(given, 4096)
	if err != nil {
		return k, fmt.Errorf("%q is not a public key (RW...) or a file with one: %w", given, err)
	}
	if err := k.public.UnmarshalText(bytes.TrimSpace(data)); err != nil {
		return k, fmt.Errorf("%s is not a public key of minisign", given)
	}
	return k, k.check()
}

func (k Key) check() error {
	if len(k.bytes()) != ed25519.PublicKeySize {
		return errors.New("the public key is not valid")
	}
	return nil
}

// bytes returns the key without minisign's header, its algorithm and ID.
func (k Key) bytes() ed25519.PublicKey {
	raw, err := base64.StdEncoding.DecodeString(k.String())
	if err != nil || len(raw) < 10 {
		return nil
	}
	return raw[10:]
}

// SecretKey signs bundles.
type SecretKey struct{ private minisign.PrivateKey }

// Public returns the key that verifies the signatures.
func (s SecretKey) Public() Key { return Key{s.private.Public().(minisign.PublicKey)} }

// GenerateKey returns a new key.
func GenerateKey() (SecretKey, error) {
	_, private, err := minisign.GenerateKey(rand.Reader)
	return SecretKey{private}, err
}

// Marshal returns the files of the secret and the public key, as minisign
// writes them. The secret key is encrypted unless the password is empty.
func (s SecretKey) Marshal(password string) (secret, public []byte, err error) {
	if password == "" {
		secret, err = s.private.MarshalText()
	} else {
		secret, err = minisign.EncryptKey(password, s.private)
	}
	if err != nil {
		return nil, nil, err
	}
	public, err = s.Public().public.MarshalText()
	return append(secret, '\n'), append(public, '\n'), err
}

// ParseSecretKey decodes the file of a secret key. It calls password only if
// the key is encrypted.
func ParseSecretKey(data []byte, password func() (string, error)) (SecretKey, error) {
	data = bytes.TrimSpace(data)
	if !minisign.IsEncrypted(data) {
		var s SecretKey
		if err := s.private.UnmarshalText(data); err != nil {
			return s, errors.New("it is not a secret key of minisign")
		}
		return s, nil
	}
	text, err := password()
	if err != nil {
		return SecretKey{}, err
	}
	private, err := minisign.DecryptKey(text, data)
	if err != nil {
		return SecretKey{}, errors.New("the password of the secret key is wrong")
	}
	return SecretKey{private}, nil
}

// Sign returns the signature of the bundle, as minisign writes it.
func (b *Bundle) Sign(key SecretKey) []byte {
	m := b.Index.Manifest
	return b.SignWithComment(key, fmt.Sprintf("%s %s %s%s", m.Name, m.Version, indexMark, b.IndexSHA256()))
}

// SignWithComment is Sign with a different trusted comment.
func (b *Bundle) SignWithComment(key SecretKey, trusted string) []byte {
	return b.hashed.SignWithComments(key.private, trusted, "signature of a tea bundle by key "+key.Public().ID())
}

// indexMark precedes the digest of a bundle's index in the trusted comment. A
// device that has only the files of its platform can verify them by it.
const indexMark = "index sha256:"

// Signature is a signature of minisign.
type Signature struct {
	text   string
	parsed minisign.Signature
}

// ErrUnsigned is the error of [ReadSignature] for a bundle without a signature.
var ErrUnsigned = errors.New("it is not signed")

// ReadSignature reads the signature file of a bundle.
func ReadSignature(path string) (Signature, error) {
	data, err := confine.ReadRegular(path, 64<<10)
	if errors.Is(err, os.ErrNotExist) {
		return Signature{}, ErrUnsigned
	}
	if err != nil {
		return Signature{}, err
	}
	s, err := parseSignature(string(data))
	if err != nil {
		return s, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// parseSignature decodes a signature. It refuses all but one encoding, except
// for the untrusted comment.
func parseSignature(text string) (Signature, error) {
	s := Signature{text: text}
	if err := s.parsed.UnmarshalText([]byte(text)); err != nil {
		return s, errors.New("it is not a signature of minisign")
	}
	if strings.TrimRight(s.parsed.String(), "\n") != strings.TrimRight(text, "\n") {
		return s, errors.New("it is not a signature as minisign writes it")
	}
	if s.parsed.Algorithm != minisign.HashEdDSA {
		return s, errors.New("it is a signature of the old kind, without a hash; sign again without minisign's -l")
	}
	return s, nil
}

// String returns the signature as minisign writes it.
func (s Signature) String() string { return s.text }

// KeyID is the ID of the key that the signature claims.
func (s Signature) KeyID() string { return fmt.Sprintf("%016X", s.parsed.KeyID) }

// Verify reports whether the key has signed the bundle.
func (b *Bundle) Verify(s Signature, key Key) bool {
	return b.hashed.Verify(key.public, []byte(s.text))
}

// HasIndex reports whether the signature can be verified by the index alone,
// with [Signature.VerifyIndex].
func (s Signature) HasIndex() bool { return s.index() != "" }

func (s Signature) index() string {
	_, sum, _ := strings.Cut(s.parsed.TrustedComment, indexMark)
	return sum
}

// VerifyIndex reports whether the key has signed a bundle with this index. It
// needs only the signature's trusted comment.
func (s Signature) VerifyIndex(indexSHA256 string, key Key) bool {
	signed := append(s.parsed.Signature[:], s.parsed.TrustedComment...)
	return s.parsed.KeyID == key.public.ID() && s.index() == indexSHA256 &&
		ed25519.Verify(key.bytes(), signed, s.parsed.CommentSignature[:])
}

// Find returns the first of the keys that has signed the bundle.
func (b *Bundle) Find(s Signature, keys []Key) (Key, bool) {
	for _, k := range keys {
		if b.Verify(s, k) {
			return k, true
		}
	}
	return Key{}, false
}
