package notify

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/httpapi"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// service sends messages. Its errors say whether the message may have been delivered.
type service interface {
	send(ctx context.Context, m *message) error
}

// message is a message to one target. Title and Text have no control characters.
type message struct {
	ID, Target, Title, Text, Priority, URL string
	Actions                                []Action
}

// lines returns the text with the link and the actions as lines.
func (m *message) lines() string {
	text := m.Text
	for _, a := range m.links() {
		text += "\n\n" + a.Label + ": " + a.URL
	}
	return text
}

// links returns the link of the message and those of its actions.
func (m *message) links() []Action {
	if m.URL == "" {
		return m.Actions
	}
	return append([]Action{{Label: "Open", URL: m.URL}}, m.Actions...)
}

// endpoint is a service with an HTTP API.
type endpoint struct {
	server  *httpapi.Server
	timeout time.Duration
	// request returns the request for a message.
	request func(m *message) httpapi.Request
	// pages accepts a web page as the answer.
	pages bool
	// proof is a member of each answer of the service; "" if the answers are not JSON.
	proof string
}

// open returns an endpoint. key names its address in errors, secrets are masked there.
func (e endpoint) open(key, base, caFile string, timeout time.Duration, secrets ...string) (service, error) {
	if _, err := address(key, base); err != nil {
		return nil, err
	}
	client, err := httpapi.NewHTTP(httpapi.Route{CAFile: caFile})
	if err != nil {
		return nil, err
	}
	// A connection that was idle may be closed, and the outcome would be unknown.
	client.Transport.(httpapi.Once).Transport.DisableKeepAlives = true
	e.timeout = timeout
	e.server = &httpapi.Server{HTTP: client, Base: base, Secrets: append(secrets, httpapi.SecretsOfAddress(base)...)}
	return e, nil
}

func (e endpoint) send(ctx context.Context, m *message) error {
	ctx, cancel := httpapi.Expire(ctx, e.timeout)
	defer cancel()
	var written atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { written.Store(true) }})
	err := e.server.Do(ctx, e.request(m), func(r httpapi.Reply) error {
		if r.IsPage() && !e.pages { // from a proxy, or a login page
			return httpapi.WebPage()
		}
		text, err := io.ReadAll(io.LimitReader(r.Body, 64<<10))
		var answer map[string]any
		if e.proof == "" || err != nil || len(text) == 0 || json.Unmarshal(text, &answer) == nil && value.Truthy(answer[e.proof]) {
			return nil // the status says that the message was accepted
		}
		foreign := tea.Errorf(tea.ConnectionError, "the answer has no member %q, so it is from another service; check url", e.proof)
		foreign.Retryable = false
		return foreign
	})
	if err == nil {
		return nil
	}
	failure := tea.AsError(err).NotSent()
	failure.Message = strings.ReplaceAll(failure.Message, "api_base", "url")
	status, _ := failure.Details["status"].(int64)
	if written.Load() && failure.Type != tea.ValidationError && (status < 400 || status >= 500 || status == http.StatusRequestTimeout) {
		return unknown(failure)
	}
	return failure // the service has refused it, or redirects
}

// unknown returns an error of a message that may have been delivered.
func unknown(e *tea.Error) *tea.Error {
	marked := *e.NotSent()
	marked.Details["not_sent"] = false
	marked.Message += "; it is not known whether the message was delivered"
	return &marked
}

// Ntfy is a topic of an ntfy server.
type Ntfy struct {
	URL   string `json:"url" pattern:"^https?://." doc:"address of the topic, such as https://ntfy.sh/pumps"`
	Token string `json:"token,omitempty" secret:"true" doc:"access token"`
}

func (n *Ntfy) open(caFile string, timeout time.Duration) (service, error) {
	u, err := address("ntfy.url", n.URL)
	if err != nil {
		return nil, err
	}
	topic := path.Base(u.Path)
	if topic == "/" || topic == "." {
		return nil, tea.Errorf(tea.ValidationError, "ntfy.url: the topic is missing, such as %s/pumps", strings.TrimSuffix(n.URL, "/"))
	}
	u.Path = path.Dir(u.Path)
	return endpoint{proof: "id", request: func(m *message) httpapi.Request {
		actions := []any{}
		for _, a := range m.Actions[:min(len(m.Actions), 3)] { // more are refused
			action := map[string]any{"action": "view", "label": a.Label, "url": a.URL, "clear": true}
			if a.Post {
				action["action"], action["method"] = "http", "POST"
			}
			actions = append(actions, action)
		}
		body := map[string]any{
			"topic": topic, "title": m.Title, "message": plaintext.Cut(m.Text, 3800), "priority": rank(m.Priority), "sequence_id": m.ID, "actions": actions,
		}
		if m.URL != "" {
			body["click"] = m.URL
		}
		return httpapi.Request{Body: body, Header: bearer(n.Token)}
	}}.open("ntfy.url", u.String(), caFile, timeout, n.Token)
}

func bearer(token string) http.Header {
	if token == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + token}}
}

// Hook is a webhook whose address is its secret.
type Hook struct {
	URL string `json:"url" secret:"true" doc:"address of the webhook"`
}

func (h *Hook) open(caFile string, timeout time.Duration, body func(*message) any) (service, error) {
	u, err := address("url", h.URL)
	if err != nil {
		return nil, err
	}
	return endpoint{request: func(m *message) httpapi.Request { return httpapi.Request{Body: body(m)} }}.
		open("url", u.String(), caFile, timeout, strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")...)
}

// slack returns a message as blocks, whose plain texts have no markup.
func slack(m *message) any {
	blocks := []any{
		map[string]any{"type": "header", "text": map[string]any{"type": "plain_text", "text": plaintext.Cut(m.Title, 100), "emoji": false}},
		map[string]any{"type": "section", "text": map[string]any{"type": "plain_text", "text": plaintext.Cut(m.Text, 2900), "emoji": false}},
	}
	var links []string
	for _, a := range m.links() {
		links = append(links, "<"+slackText(a.URL)+"|"+slackText(strings.ReplaceAll(a.Label, "|", "/"))+">")
	}
	if links != nil {
		blocks = append(blocks, map[string]any{"type": "section", "text": map[string]any{"type": "mrkdwn", "text": strings.Join(links, "  ")}})
	}
	return map[string]any{"text": slackText(m.Title), "blocks": blocks}
}

func slackText(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}

// teams returns a message as an adaptive card. Text runs have no markup.
func teams(m *message) any {
	run := func(text string, more map[string]any) any {
		r := map[string]any{"type": "TextRun", "text": text}
		for k, v := range more {
			r[k] = v
		}
		return map[string]any{"type": "RichTextBlock", "inlines": []any{r}}
	}
	actions := mapped(m.links(), func(a Action) any { return map[string]any{"type": "Action.OpenUrl", "title": a.Label, "url": a.URL} })
	card := map[string]any{
		"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "actions": actions,
		"body": []any{run(m.Title, map[string]any{"weight": "Bolder", "size": "Medium"}), run(plaintext.Cut(m.Text, 20000), nil)},
	}
	return map[string]any{"type": "message", "attachments": []any{map[string]any{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}}
}

// Telegram is a chat of Telegram.
type Telegram struct {
	Token string `json:"token" secret:"true" doc:"token of the bot"`
	Chat  string `json:"chat" doc:"id of the chat, or the @name of a channel"`
	URL   string `json:"url,omitempty" pattern:"^https?://." doc:"address of the Bot API; default https://api.telegram.org"`
}

func (t *Telegram) open(caFile string, timeout time.Duration) (service, error) {
	if err := required("telegram.token telegram.chat", t.Token, t.Chat); err != nil {
		return nil, err
	}
	return endpoint{proof: "ok", request: func(m *message) httpapi.Request {
		buttons, text := []any{}, plaintext.Cut(strings.TrimSpace(m.Title+"\n\n"+m.Text), 4000)
		for _, a := range m.links() {
			if strings.HasPrefix(strings.ToLower(a.URL), "http") {
				buttons = append(buttons, []any{map[string]any{"text": a.Label, "url": a.URL}})
			} else { // a button with it would be refused
				text += "\n\n" + a.Label + ": " + a.URL
			}
		}
		body := map[string]any{
			// Without parse_mode, the text has no markup.
			"chat_id": t.Chat, "text": text, "disable_notification": rank(m.Priority) < 3,
			"link_preview_options": map[string]any{"is_disabled": true}, "reply_markup": map[string]any{"inline_keyboard": buttons},
		}
		return httpapi.Request{Path: "bot" + t.Token + "/sendMessage", Body: body}
	}}.open("telegram.url", cmp.Or(t.URL, "https://api.telegram.org"), caFile, timeout, t.Token)
}

// Matrix is a room of Matrix.
type Matrix struct {
	URL   string `json:"url" pattern:"^https?://." doc:"address of the home server, such as https://matrix.org"`
	Token string `json:"token" secret:"true" doc:"access token of the user that sends"`
	Room  string `json:"room" doc:"id of the room, such as !abc:matrix.org"`
}

func (x *Matrix) open(caFile string, timeout time.Duration) (service, error) {
	if err := required("matrix.token matrix.room", x.Token, x.Room); err != nil {
		return nil, err
	}
	if !strings.HasPrefix(x.Room, "!") {
		return nil, tea.Errorf(tea.ValidationError, "matrix.room: expected the id of a room, such as !abc:matrix.org, got %q; clients show it in the settings of the room", x.Room)
	}
	return endpoint{proof: "event_id", request: func(m *message) httpapi.Request {
		var links strings.Builder
		for _, a := range m.links() {
			fmt.Fprintf(&links, `<p><a href="%s">%s</a></p>`, html.EscapeString(a.URL), html.EscapeString(a.Label))
		}
		text := plaintext.Cut(m.Text, 16000)
		body := map[string]any{
			"msgtype": "m.text", "body": m.Title + "\n\n" + plaintext.Cut(m.lines(), 20000), "format": "org.matrix.custom.html",
			"formatted_body": "<p><b>" + html.EscapeString(m.Title) + "</b></p><p>" + strings.ReplaceAll(html.EscapeString(text), "\n", "<br>") + "</p>" + links.String(),
		}
		// The server takes a message with the same id once.
		return httpapi.Request{Method: http.MethodPut, Path: "_matrix/client/v3/rooms/" + url.PathEscape(x.Room) + "/send/m.room.message/" + m.ID, Body: body, Header: bearer(x.Token)}
	}}.open("matrix.url", x.URL, caFile, timeout, x.Token)
}

// Webhook is a receiver of JSON.
type Webhook struct {
	URL     string            `json:"url" secret:"true" doc:"address that gets a POST request"`
	Secret  string            `json:"secret,omitempty" secret:"true" doc:"key of the signature: X-Signature is sha256= and the HMAC-SHA256 of the body"`
	Headers map[string]string `json:"headers,omitempty" secret:"true" doc:"further headers"`
}

func (w *Webhook) open(caFile string, timeout time.Duration) (service, error) {
	secrets := []string{w.Secret}
	for _, value := range w.Headers {
		secrets = append(secrets, httpapi.SecretsOf(value)...)
	}
	return endpoint{pages: true, request: func(m *message) httpapi.Request {
		actions := mapped(m.Actions, func(a Action) any { return map[string]any{"label": a.Label, "url": a.URL, "post": a.Post} })
		body, _ := json.Marshal(map[string]any{ // texts and truth values
			"id": m.ID, "target": m.Target, "title": m.Title, "message": m.Text, "priority": cmp.Or(m.Priority, "default"), "url": m.URL, "actions": actions,
		})
		header := http.Header{"Idempotency-Key": {m.ID}}
		for name, value := range w.Headers {
			header.Set(name, value)
		}
		if w.Secret != "" {
			mac := hmac.New(sha256.New, []byte(w.Secret))
			mac.Write(body)
			header.Set("X-Signature", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		}
		return httpapi.Request{Body: json.RawMessage(body), Header: header}
	}}.open("webhook.url", w.URL, caFile, timeout, secrets...)
}
