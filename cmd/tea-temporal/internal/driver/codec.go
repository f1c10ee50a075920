package driver

import (
	"bufio"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	teacmd "github.com/the-edge-agent/tea/cmd"
)

// The metadata of an encrypted payload.
const (
	encrypted = "binary/encrypted"
	keyName   = "encryption-key-id"
)

// codec encrypts payloads with AES-256-GCM. The nonce is a keyed digest of the
// content, so equal values have equal ciphertexts, and values that a run carries from
// one execution to the next are stored once. An observer learns which values are equal.
type codec struct {
	// first is the key for encryption; all keys decrypt.
	first string
	keys  map[string]sealer
}

// sealer holds the uses of a key.
type sealer struct {
	aead  cipher.AEAD
	nonce []byte // a key
}

// newCodec reads a file with keys, one per line: a name, and 32 bytes in Base64.
// Without a file the codec leaves values as they are, and reports encrypted ones.
func newCodec(file string) (*codec, error) {
	c := &codec{keys: map[string]sealer{}}
	if file == "" {
		return c, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, teacmd.UsageErrorf("read the keys: %w", err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(text)))
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if len(words) != 2 || c.keys[words[0]].aead != nil {
			return nil, teacmd.UsageErrorf("read the keys: %s:%d: expected a name that is not used twice, and a key", file, n)
		}
		key, err := base64.StdEncoding.DecodeString(words[1])
		if err != nil || len(key) != 32 {
			return nil, teacmd.UsageErrorf("read the keys: %s:%d: the key %s is not 32 bytes in Base64, as `openssl rand -base64 32` prints them", file, n, words[0])
		}
		if c.keys[words[0]], err = newSealer(key); err != nil {
			return nil, fmt.Errorf("read the keys: %w", err)
		}
		if c.first == "" {
			c.first = words[0]
		}
	}
	if c.first == "" {
		return nil, teacmd.UsageErrorf("read the keys: %s has none", file)
	}
	return c, lines.Err()
}

func newSealer(key []byte) (s sealer, err error) {
	content, err := hkdf.Key(sha256.New, key, nil, "tea temporal content", 32)
	if err != nil {
		return s, err
	}
	if s.nonce, err = hkdf.Key(sha256.New, key, nil, "tea temporal nonce", 32); err != nil {
		return s, err
	}
	block, err := aes.NewCipher(content)
	if err != nil {
		return s, err
	}
	s.aead, err = cipher.NewGCM(block)
	return s, err
}

// Encode encrypts payloads.
func (c *codec) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	if c.first == "" {
		return payloads, nil
	}
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		plain, err := proto.MarshalOptions{Deterministic: true}.Marshal(p)
		if err != nil {
			return nil, fmt.Errorf("encrypt a value: %w", err)
		}
		s := c.keys[c.first]
		mac := hmac.New(sha256.New, s.nonce)
		mac.Write(plain)
		nonce := mac.Sum(nil)[:s.aead.NonceSize()]
		out[i] = &commonpb.Payload{
			Metadata: map[string][]byte{converter.MetadataEncoding: []byte(encrypted), keyName: []byte(c.first)},
			Data:     s.aead.Seal(nonce, nonce, plain, []byte(c.first)),
		}
	}
	return out, nil
}

// Decode decrypts encrypted payloads and returns the others unchanged.
func (c *codec) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	out := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		if out[i] = p; string(p.GetMetadata()[converter.MetadataEncoding]) != encrypted {
			continue
		}
		name := string(p.GetMetadata()[keyName])
		s, ok := c.keys[name]
		if c.first == "" {
			return nil, fmt.Errorf("decrypt a value: it is encrypted with the key %q; pass the file that has it with --keys", name)
		}
		if !ok {
			return nil, fmt.Errorf("decrypt a value: the file of --keys does not contain the key %q", name)
		}
		data := p.GetData()
		if len(data) < s.aead.NonceSize() {
			return nil, errors.New("decrypt a value: it is too short")
		}
		plain, err := s.aead.Open(nil, data[:s.aead.NonceSize()], data[s.aead.NonceSize():], []byte(name))
		if err != nil {
			return nil, fmt.Errorf("decrypt a value with the key %s: %w", name, err)
		}
		out[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(plain, out[i]); err != nil {
			return nil, fmt.Errorf("decrypt a value: %w", err)
		}
	}
	return out, nil
}
