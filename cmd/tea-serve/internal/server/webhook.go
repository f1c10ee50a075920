package server

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/sdk/value"
)

// defaultReplay is the default of replay_seconds.
const defaultReplay = 5 * time.Minute

// webhook checks the configuration of a webhook.
func (s *server) webhook(t *trigger) (hint string, err error) {
	if t.Webhook.Secret == "" {
		return "", nil
	}
	var ok bool
	if t.secret, ok = s.svc.Secret(t.Webhook.Secret); !ok || t.secret == "" {
		return "pass it with --secrets or --secrets-env", fmt.Errorf("webhook: the secret %q is missing", t.Webhook.Secret)
	}
	return "", nil
}

// hook returns the trigger for a path, or nil.
func (s *server) hook(path string) *trigger {
	for _, t := range s.catalog.triggers(host.TriggerWebhook) {
		if t.Webhook.HookPath() == path {
			return t
		}
	}
	return nil
}

// postHook starts a run for a webhook.
func (s *server) postHook(w http.ResponseWriter, r *http.Request) {
	if err := s.serveHook(w, r); err != nil {
		s.fail(w, err)
	}
}

func (s *server) serveHook(w http.ResponseWriter, r *http.Request) error {
	t := s.hook(strings.Trim(r.PathValue("path"), "/"))
	if t == nil {
		return &statusError{http.StatusNotFound, errors.New("there is no such webhook")}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return badRequest(err)
	}
	key, err := t.verify(r.Header, body, time.Now())
	if err != nil {
		return &statusError{http.StatusUnauthorized, err}
	}
	members, err := webhookEvent(r, body)
	if err != nil {
		return err
	}
	req, err := t.request(r.Context(), s, t.event(members))
	if err != nil {
		return err
	}
	// A repeated request comes from an attacker, or from a sender that did not see a
	// response.
	if key != "" {
		req.replay, req.replayTime = t.Name+"\x00"+key, t.replay()
	}
	a, err := s.accept(req)
	if err != nil {
		return err
	}
	return s.answer(w, r, a, 0)
}

// webhookEvent returns the event members for a request.
func webhookEvent(r *http.Request, body []byte) (map[string]any, error) {
	header := map[string]any{}
	for name := range r.Header {
		switch name {
		case "Authorization", "Cookie":
			continue
		}
		header[strings.ToLower(name)] = r.Header.Get(name)
	}
	query := map[string]any{}
	for name, values := range r.URL.Query() {
		query[name] = values[0]
	}
	event := map[string]any{"path": r.URL.Path, "headers": header, "query": query}
	switch mediaType(r) {
	case "application/x-www-form-urlencoded":
		if form, err := url.ParseQuery(string(body)); err == nil {
			fields := map[string]any{}
			for name, values := range form {
				fields[name] = values[0]
			}
			event["body"] = fields
			return event, nil
		}
	case "application/json":
		if _, err := value.Decode(withoutMark(body)); err != nil && len(body) > 0 {
			return nil, badRequest(fmt.Errorf("body: %w", err))
		}
	}
	setBody(event, body)
	return event, nil
}

// mediaType returns the media type of the body of a request.
func mediaType(r *http.Request) string {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// setBody sets the body of an event: a JSON value, other text, or Base64 if the body
// is neither.
func setBody(event map[string]any, body []byte) {
	v, err := value.Decode(withoutMark(body))
	switch {
	case err == nil && len(body) > 0 && utf8.Valid(body):
		event["body"] = v
	case utf8.Valid(body):
		event["body"] = string(body)
	default:
		event["body"], event["encoding"] = base64.StdEncoding.EncodeToString(body), "base64"
	}
}

// withoutMark removes a leading byte order mark, which JSON does not allow.
func withoutMark(text []byte) []byte { return bytes.TrimPrefix(text, []byte("\ufeff")) }

func (t *trigger) replay() time.Duration {
	if t.Webhook.Replay != nil {
		return *t.Webhook.Replay
	}
	return defaultReplay
}

// errSignature reports a request without a valid signature.
var errSignature = errors.New("the signature is missing or wrong")

// verify checks the signature of a request and returns a value that identifies it;
// "" for requests without a signature.
func (t *trigger) verify(header http.Header, body []byte, now time.Time) (key string, err error) {
	switch t.Webhook.Signature {
	case "none":
		return "", nil
	case "stripe":
		return t.verifyStripe(header.Get("Stripe-Signature"), body, now)
	}
	name := "X-Signature"
	switch {
	case t.Webhook.Signature == "github":
		name = "X-Hub-Signature-256"
	case t.Webhook.Header != "":
		name = t.Webhook.Header
	}
	given := strings.TrimPrefix(header.Get(name), "sha256=")
	if !t.signed(given, body) {
		return "", errSignature
	}
	return "signature " + strings.ToLower(given), nil
}

// signed reports whether a hexadecimal signature is valid for a text.
func (t *trigger) signed(given string, text []byte) bool {
	signature, err := hex.DecodeString(given)
	mac := hmac.New(sha256.New, []byte(t.secret))
	mac.Write(text)
	return hmac.Equal(signature, mac.Sum(nil)) && err == nil
}

// verifyStripe checks a header such as t=1492774577,v1=5257a8...: the signature
// covers the time.
func (t *trigger) verifyStripe(header string, body []byte, now time.Time) (key string, err error) {
	var at string
	var signatures []string
	for part := range strings.SplitSeq(header, ",") {
		switch name, v, _ := strings.Cut(strings.TrimSpace(part), "="); name {
		case "t":
			at = v
		case "v1":
			signatures = append(signatures, v)
		}
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if err != nil {
		return "", errSignature
	}
	for _, given := range signatures {
		if t.signed(given, append([]byte(at+"."), body...)) {
			if age := now.Sub(time.Unix(seconds, 0)); age > t.replay() || age < -t.replay() {
				if age < 0 {
					return "", fmt.Errorf("the request was signed %s in the future, which is beyond replay_seconds; check the clocks", -age.Round(time.Second))
				}
				return "", fmt.Errorf("the request was signed %s ago, which is beyond replay_seconds", age.Round(time.Second))
			}
			return "signature " + strings.ToLower(given), nil
		}
	}
	return "", errSignature
}
