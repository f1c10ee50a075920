// Package webpush sends messages to browsers through their push services: it encrypts
// them (RFC 8291) and identifies the sender (RFC 8292). Start with [Sender.Send].
package webpush

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/safenet"
)

const (
	// MaxText is the maximum size of a message: push services accept bodies of 4096
	// bytes, and the header, the padding and the tag take 103.
	MaxText = 4096 - 103
	// timeout is how long a push service has to answer.
	timeout = 20 * time.Second
	// maxTTL is the longest time that services keep a message.
	maxTTL = 28 * 24 * time.Hour
	// tokenLifetime is how long a token is valid, at most a day.
	tokenLifetime = 12 * time.Hour
)

// Subscription is the address and the keys of a browser, as PushSubscription.toJSON returns
// them.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
}

// Keys are the keys for which messages are encrypted, as base64url.
type Keys struct {
	P256DH string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// Message is a message to a browser.
type Message struct {
	// Text has at most [MaxText] bytes.
	Text []byte
	// Topic has up to 32 characters of base64url. The message replaces an earlier one with
	// the same topic that was not delivered yet.
	Topic string
	// TTL is how long the service keeps the message for a browser that is not connected.
	TTL time.Duration
}

// ErrGone reports that the browser or the person has ended the subscription.
var ErrGone = errors.New("the subscription has ended")

// Refused reports that a push service does not accept a message.
type Refused struct {
	Service string
	Status  int
}

func (e *Refused) Error() string {
	return fmt.Sprintf("the push service %s answered with status %d", e.Service, e.Status)
}

// Retryable reports whether the service may accept the message later.
func (e *Refused) Retryable() bool {
	return e.Status >= 500 || e.Status == http.StatusTooManyRequests || e.Status == http.StatusRequestTimeout
}

// NewKey returns a new key of a sender.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return key.Bytes()
}

// Sender sends messages. It is safe for concurrent use.
type Sender struct {
	key     *ecdsa.PrivateKey
	public  string
	contact string
	guard   *safenet.Guard
	client  *http.Client
}

// NewSender returns a sender with a key from [NewKey]. contact is an address of the
// operator, mailto: or https:, for the push services.
func NewSender(key []byte, contact string, guard *safenet.Guard) (*Sender, error) {
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), key)
	if err != nil {
		return nil, fmt.Errorf("read the key for push services: %w", err)
	}
	public, err := private.PublicKey.Bytes()
	if err != nil {
		return nil, err
	}
	return &Sender{key: private, public: encode(public), contact: contact, guard: guard, client: &http.Client{
		Transport: guard.Transport(), Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // messages are for the subscribed address only
	}}, nil
}

// PublicKey returns the key with which browsers subscribe, as base64url.
func (s *Sender) PublicKey() string { return s.public }

// Check returns an error if messages cannot be sent to a subscription.
func (s *Sender) Check(sub Subscription) error {
	_, _, _, err := s.parse(sub)
	return err
}

// parse returns the parts of a subscription to which messages can be sent.
func (s *Sender) parse(sub Subscription) (u *url.URL, public *ecdh.PublicKey, auth []byte, err error) {
	u, err = url.Parse(sub.Endpoint)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || len(sub.Endpoint) > 2048 {
		return nil, nil, nil, errors.New("endpoint: expected the https:// address of a push service")
	}
	if err := s.guard.CheckHost(u.Hostname()); err != nil {
		return nil, nil, nil, errors.New("endpoint: " + tea.AsError(err).Message)
	}
	point, err := decode(sub.Keys.P256DH)
	if err == nil {
		public, err = ecdh.P256().NewPublicKey(point)
	}
	if err != nil {
		return nil, nil, nil, errors.New("keys.p256dh: expected a public key of P-256 as base64url")
	}
	if auth, err = decode(sub.Keys.Auth); err != nil || len(auth) != 16 {
		return nil, nil, nil, errors.New("keys.auth: expected 16 bytes as base64url")
	}
	return u, public, auth, nil
}

// Send sends a message. The errors [ErrGone] and [Refused] are answers of the push
// service; the message was not accepted.
func (s *Sender) Send(ctx context.Context, sub Subscription, m Message) error {
	u, public, auth, err := s.parse(sub)
	if err != nil {
		return err
	}
	own, err := ecdh.P256().GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	salt := make([]byte, 16)
	_, _ = rand.Read(salt) // it never fails
	body, err := encrypt(m.Text, public, auth, own, salt)
	if err != nil {
		return err
	}
	token, err := s.token(u.Scheme+"://"+u.Host, time.Now())
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, sub.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"Authorization": "vapid t=" + token + ", k=" + s.public, "Content-Encoding": "aes128gcm", "Content-Type": "application/octet-stream",
		"TTL": strconv.Itoa(int(min(max(m.TTL, 0), maxTTL).Seconds())), "Urgency": "high", "Topic": m.Topic,
	} {
		req.Header.Set(name, text)
	}
	res, err := s.client.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return fmt.Errorf("the push service %s cannot be reached: %s", u.Host, tea.AsError(failed.Err).Message) // the path is a secret
	}
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, 64<<10)) // so the connection can be reused
	_ = res.Body.Close()                                         // it was only read
	switch {
	case res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusGone:
		return ErrGone
	case res.StatusCode < 200 || res.StatusCode > 299:
		return &Refused{u.Host, res.StatusCode}
	}
	return nil
}

// token returns a signed JWT for a push service.
func (s *Sender) token(audience string, now time.Time) (string, error) {
	claims, err := json.Marshal(map[string]any{"aud": audience, "exp": now.Add(tokenLifetime).Unix(), "sub": s.contact})
	if err != nil {
		return "", err
	}
	text := encode([]byte(`{"typ":"JWT","alg":"ES256"}`)) + "." + encode(claims)
	digest := sha256.Sum256([]byte(text))
	r, v, err := ecdsa.Sign(rand.Reader, s.key, digest[:])
	if err != nil {
		return "", err
	}
	signature := make([]byte, 64)
	r.FillBytes(signature[:32])
	v.FillBytes(signature[32:])
	return text + "." + encode(signature), nil
}

// encrypt returns a body with one record in the content encoding aes128gcm (RFC 8188). own
// and salt must be new for each message.
func encrypt(text []byte, public *ecdh.PublicKey, auth []byte, own *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	if len(text) > MaxText {
		return nil, fmt.Errorf("the message has %d bytes (limit %d)", len(text), MaxText)
	}
	shared, err := own.ECDH(public)
	if err != nil {
		return nil, err
	}
	sender := own.PublicKey().Bytes()
	material, err1 := hkdf.Key(sha256.New, shared, auth, "WebPush: info\x00"+string(public.Bytes())+string(sender), 32)
	key, err2 := hkdf.Key(sha256.New, material, salt, "Content-Encoding: aes128gcm\x00", 16)
	nonce, err3 := hkdf.Key(sha256.New, material, salt, "Content-Encoding: nonce\x00", 12)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	body := binary.BigEndian.AppendUint32(bytes.Clone(salt), 4096)
	body = append(append(body, byte(len(sender))), sender...)
	return aead.Seal(body, nonce, append(bytes.Clone(text), 2), nil), nil // 2 marks the last record
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

// decode reads base64url with or without padding.
func decode(text string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
}
