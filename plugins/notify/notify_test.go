package notify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/the-edge-agent/tea/plugins/notify"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/teatest"
)

type object = map[string]any

// hostile has what could become a header, markup or a command of a terminal.
const hostile = "Pump 7\r\nBcc: eve@example.com\n<b>*bold*</b> & _x_ [a](http://b)\x1b[31m\u202e"

// send calls notify.send in a new instance. The state is that of the test unless the
// settings have one.
func send(t *testing.T, settings, params object) (object, error) {
	t.Helper()
	if _, ok := settings["state"]; !ok {
		settings["state"] = t.TempDir()
	}
	raw, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	bundle := notify.Bundle()
	instance, err := bundle.NewInstance(t.Context(), tea.Settings{"notify": raw})
	if err != nil {
		return nil, err
	}
	defer func() { _ = instance.Close() }()
	for key, v := range (object{"to": "ops", "title": "Pump 7", "message": "The pressure is 9 bar."}) {
		if _, ok := params[key]; !ok {
			params[key] = v
		}
	}
	resp, err := instance.Invoke(t.Context(), &tea.Request{Action: "notify.send", Params: tea.ValuePayload(params), Call: tea.Call{Attempt: 1, IdempotencyKey: "call-1"}, Host: &teatest.Host{}})
	if err != nil {
		return nil, err
	}
	text, err := resp.Result.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var result object
	return result, json.Unmarshal(text, &result)
}

// to returns settings with one target, ops.
func to(service string, settings object) object {
	return object{"targets": object{"ops": object{service: settings}}}
}

// received is a request that a server got.
type received struct {
	Method, Path string
	Header       http.Header
	Body         object
}

// sink is a server that keeps requests.
func sink(t *testing.T, status int, answer string) (address string, got chan received) {
	t.Helper()
	got = make(chan received, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		request := received{Method: r.Method, Path: r.URL.EscapedPath(), Header: r.Header}
		if err = errors.Join(err, json.Unmarshal(text, &request.Body)); err != nil {
			t.Errorf("%v: %s", err, text)
		}
		got <- request
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

// taken is an answer of ntfy, Telegram and Matrix.
const taken = `{"ok": true, "id": "1", "event_id": "$1"}`

// Every service gets the same message, and no text becomes markup or a header.
func TestFormatsOfTheServices(t *testing.T) {
	t.Parallel()
	address, got := sink(t, http.StatusOK, taken)
	const title, text = `Pump 7 Bcc: eve@example.com <b>*bold*</b> & _x_ [a](http://b)[31m`, "Pump 7\nBcc: eve@example.com\n<b>*bold*</b> & _x_ [a](http://b)[31m"
	const yes = "http://tea.example/answer/1?a=1&b=2"
	for name, c := range map[string]struct {
		settings object
		path     string
		body     object
	}{
		"ntfy": {object{"url": address + "/sub/pumps", "token": "tk_0123456789"}, "/sub", object{
			"topic": "pumps", "title": title, "message": text, "priority": 5.0, "click": "http://tea.example/run",
			"actions": []any{object{"action": "http", "method": "POST", "label": "yes", "url": yes, "clear": true}},
		}},
		"slack": {object{"url": address + "/services/T0/B0/secret-of-slack"}, "/services/T0/B0/secret-of-slack", object{
			"text": strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(title),
			"blocks": []any{
				object{"type": "header", "text": object{"type": "plain_text", "text": title, "emoji": false}},
				object{"type": "section", "text": object{"type": "plain_text", "text": text, "emoji": false}},
				object{"type": "section", "text": object{"type": "mrkdwn", "text": "<http://tea.example/run|Open>  <http://tea.example/answer/1?a=1&amp;b=2|yes>"}},
			},
		}},
		"teams": {object{"url": address + "/workflows/1"}, "/workflows/1", object{
			"type": "message", "attachments": []any{object{"contentType": "application/vnd.microsoft.card.adaptive", "content": object{
				"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4",
				"body": []any{
					object{"type": "RichTextBlock", "inlines": []any{object{"type": "TextRun", "text": title, "weight": "Bolder", "size": "Medium"}}},
					object{"type": "RichTextBlock", "inlines": []any{object{"type": "TextRun", "text": text}}},
				},
				"actions": []any{object{"type": "Action.OpenUrl", "title": "Open", "url": "http://tea.example/run"}, object{"type": "Action.OpenUrl", "title": "yes", "url": yes}},
			}}},
		}},
		"telegram": {object{"url": address, "token": "1234:secret", "chat": "-100"}, "/bot1234:secret/sendMessage", object{
			"chat_id": "-100", "text": title + "\n\n" + text, "disable_notification": false, "link_preview_options": object{"is_disabled": true},
			"reply_markup": object{"inline_keyboard": []any{[]any{object{"text": "Open", "url": "http://tea.example/run"}}, []any{object{"text": "yes", "url": yes}}}},
		}},
		"matrix": {object{"url": address, "token": "syt_0123456789", "room": "!a/b:example.org"}, "/_matrix/client/v3/rooms/%21a%2Fb:example.org/send/m.room.message/ID", object{
			"msgtype": "m.text", "format": "org.matrix.custom.html", "body": title + "\n\n" + text + "\n\nOpen: http://tea.example/run\n\nyes: " + yes,
			"formatted_body": "<p><b>Pump 7 Bcc: eve@example.com &lt;b&gt;*bold*&lt;/b&gt; &amp; _x_ [a](http://b)[31m</b></p><p>Pump 7<br>Bcc: eve@example.com<br>&lt;b&gt;*bold*&lt;/b&gt; &amp; _x_ [a](http://b)[31m</p>" +
				`<p><a href="http://tea.example/run">Open</a></p><p><a href="http://tea.example/answer/1?a=1&amp;b=2">yes</a></p>`,
		}},
		"webhook": {object{"url": address + "/hook", "secret": "0123456789abcdef"}, "/hook", object{
			"target": "ops", "title": title, "message": text, "priority": "urgent", "url": "http://tea.example/run",
			"actions": []any{object{"label": "yes", "url": yes, "post": true}},
		}},
	} {
		var ids []string
		for range 2 { // a repetition has the same id
			_, err := send(t, to(name, c.settings), object{
				"title": hostile, "message": hostile, "priority": "urgent", "url": "http://tea.example/run", "actions": []any{object{"label": "yes\n", "url": yes, "post": true}},
			})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			r := <-got
			id, _ := r.Body["id"].(string)
			if delete(r.Body, "id"); name == "ntfy" {
				id, _ = r.Body["sequence_id"].(string)
				delete(r.Body, "sequence_id")
			}
			if at := strings.LastIndex(r.Path, "/"); name == "matrix" {
				id, r.Path = r.Path[at+1:], r.Path[:at+1]+"ID"
			}
			if ids = append(ids, id); r.Path != c.path {
				t.Errorf("%s: path %s, want %s", name, r.Path, c.path)
			}
			if diff := cmp.Diff(c.body, r.Body); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if want := map[string]string{"ntfy": "Bearer tk_0123456789", "matrix": "Bearer syt_0123456789"}[name]; r.Header.Get("Authorization") != want {
				t.Errorf("%s: Authorization %q", name, r.Header.Get("Authorization"))
			}
			if signature := r.Header.Get("X-Signature"); name == "webhook" && len(signature) != len("sha256=")+64 {
				t.Errorf("signature %q", signature)
			}
		}
		if hasID := name == "ntfy" || name == "matrix" || name == "webhook"; ids[0] != ids[1] || hasID == (ids[0] == "") {
			t.Errorf("%s: ids %q", name, ids)
		}
	}
}

// An error says whether the message may have been delivered.
func TestErrorsSayWhetherAMessageWasSent(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch strings.Trim(r.URL.Path, "/") {
		case "301":
			http.Redirect(w, r, "/200", http.StatusMovedPermanently)
		case "429":
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusTooManyRequests)
		case "400":
			w.WriteHeader(http.StatusBadRequest)
		case "500":
			w.WriteHeader(http.StatusInternalServerError)
		case "503":
			w.WriteHeader(http.StatusServiceUnavailable)
		case "silent":
			<-release
		case "cut":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		case "half":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "half")
		case "page":
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<html><title>Log in</title>")
		default:
			t.Errorf("request for %s", r.URL)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(release) })
	encrypted := httptest.NewUnstartedServer(http.NotFoundHandler())
	encrypted.Config.ErrorLog = log.New(io.Discard, "", 0)
	encrypted.StartTLS()
	t.Cleanup(encrypted.Close)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	for address, want := range map[string]struct {
		kind      tea.ErrorType
		notSent   bool
		retryable bool
	}{
		"http://" + closed.Addr().String(): {tea.ConnectionError, true, true},
		"http://no-such-host.invalid/x":    {tea.ConnectionError, true, true},
		encrypted.URL:                      {tea.ConnectionError, true, false},
		s.URL + "/301":                     {tea.ValidationError, true, false},
		s.URL + "/400":                     {tea.ValidationError, true, false},
		s.URL + "/429":                     {tea.RateLimited, true, true},
		s.URL + "/500":                     {tea.ConnectionError, false, true},
		s.URL + "/503":                     {tea.ConnectionError, false, true},
		s.URL + "/cut":                     {tea.ConnectionError, false, true},
		s.URL + "/silent":                  {tea.Timeout, false, true},
		s.URL + "/page":                    {tea.ConnectionError, false, false},
	} {
		settings := to("teams", object{"url": address})
		if strings.HasSuffix(address, "/silent") {
			settings["targets"].(object)["ops"].(object)["timeout_seconds"] = 0.5
		}
		_, err := send(t, settings, object{})
		e := tea.AsError(err)
		if e == nil || e.Type != want.kind || e.Retryable != want.retryable || e.Details["not_sent"] != want.notSent || strings.Contains(e.Message, "not known whether") == want.notSent {
			t.Errorf("%s: %v with %v (retryable: %v), want %v", address, err, e.Details, e.Retryable, want)
		}
		if strings.HasSuffix(address, "/429") && e.RetryAfter != 7*time.Second {
			t.Errorf("429: wait %s", e.RetryAfter)
		}
	}
	if _, err := send(t, to("teams", object{"url": s.URL + "/half"}), object{}); err != nil {
		t.Errorf("a cut off answer with a success status: %v", err)
	}
}

// No service gets an address that runs a script or opens a file.
func TestLinksLeadToPagesMailAndTelephones(t *testing.T) {
	t.Parallel()
	address, got := sink(t, http.StatusOK, taken)
	services := map[string]object{
		"ntfy": {"url": address + "/pumps"}, "slack": {"url": address}, "teams": {"url": address}, "telegram": {"url": address, "token": "1234:secret", "chat": "1"},
		"matrix": {"url": address, "token": "syt_0123456789", "room": "!r:x"}, "webhook": {"url": address},
		"email": {"server": "127.0.0.1:1", "tls": "none", "from": "a@b.c", "to": []any{"a@b.c"}},
	}
	for name, settings := range services {
		for _, link := range []string{"javascript:alert(1)", "JavaScript:alert(1)", "java\nscript:alert(1)", " javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "vbscript:x", "//evil.example", "/run", "evil.example", "https:", "mailto:", "http://a b"} {
			for position, params := range map[string]object{"url: ": {"url": link}, "actions[1].url: ": {"actions": []any{object{"label": "a", "url": "https://tea.example"}, object{"label": "b", "url": link}}}} {
				_, err := send(t, to(name, settings), params)
				if e := tea.AsError(err); e == nil || e.Type != tea.ValidationError || e.Details["not_sent"] != true || !strings.HasPrefix(e.Message, position) || !strings.Contains(e.Message, "begins with http:, https:, mailto: or tel:") {
					t.Errorf("%s: %s%q: %v", name, position, link, err)
				}
			}
		}
		if _, err := send(t, to(name, settings), object{"actions": []any{object{"label": "a", "url": "tel:1", "post": true}}}); err == nil || !strings.Contains(err.Error(), "begins with http: or https:") {
			t.Errorf("%s: a POST request to a telephone: %v", name, err)
		}
		if len(got) > 0 {
			t.Fatalf("%s: %+v was sent", name, <-got)
		}
		if name == "email" {
			continue
		}
		if _, err := send(t, to(name, settings), object{"url": "HTTPS://tea.example/run", "actions": []any{object{"label": "Mail", "url": "mailto:ann@example.com?subject=x"}, object{"label": "Call", "url": "tel:+491234"}}}); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := <-got
		text, err := json.Marshal(r.Body)
		if err != nil || !strings.Contains(string(text), "tel:+491234") || !strings.Contains(string(text), "mailto:ann@example.com") {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if name == "telegram" && !strings.HasSuffix(r.Body["text"].(string), "\n\nMail: mailto:ann@example.com?subject=x\n\nCall: tel:+491234") {
			t.Errorf("telegram: %s", text)
		}
	}
}

func TestSecretsAreMaskedInErrors(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", r.URL.String())
		w.WriteHeader(map[bool]int{true: http.StatusFound, false: http.StatusForbidden}[strings.Contains(r.URL.RawQuery, "moved")])
		_, _ = io.WriteString(w, "refused "+r.URL.String()+" "+r.Header.Get("Authorization")+r.Header.Get("X-Key"))
	}))
	t.Cleanup(s.Close)
	const secret = "open-sesame-42"
	for name, settings := range map[string]object{
		"ntfy": {"url": s.URL + "/pumps", "token": secret}, "slack": {"url": s.URL + "/services/" + secret}, "telegram": {"url": s.URL, "token": secret, "chat": "1"},
		"matrix": {"url": s.URL, "token": secret, "room": "!r:x"}, "webhook": {"url": s.URL + "/?key=" + secret, "headers": object{"X-Key": secret}}, "teams": {"url": s.URL + "/?moved=1&sig=" + secret},
	} {
		_, err := send(t, to(name, settings), object{})
		if e := tea.AsError(err); e == nil || strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), "***") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMessagesGoToNamedTargetsOnly(t *testing.T) {
	t.Parallel()
	address, got := sink(t, http.StatusOK, "")
	hook := object{"webhook": object{"url": address}}
	settings := object{"targets": object{"ops": hook, "ann": hook, "down": object{"webhook": object{"url": "http://127.0.0.1:1"}}}}
	for _, c := range []struct {
		to   any
		want tea.ErrorType
	}{{"bob", tea.NotFound}, {address, tea.NotFound}, {[]any{"ops", "an"}, tea.NotFound}, {[]any{}, tea.ValidationError}, {7, tea.ValidationError}, {[]any{7}, tea.ValidationError}} {
		if _, err := send(t, settings, object{"to": c.to}); err == nil || tea.AsError(err).Type != c.want {
			t.Errorf("to %v: %v, want %s", c.to, err, c.want)
		}
	}
	if len(got) > 0 {
		t.Fatalf("%d messages were sent", len(got))
	}
	r, err := send(t, settings, object{"to": []any{"ops", "ann", "ops"}})
	if diff := cmp.Diff([]any{"ops", "ann"}, r["sent"]); err != nil || diff != "" || len(got) != 2 {
		t.Errorf("%v, %d messages (-want +got):\n%s", err, len(got), diff)
	}
	_, err = send(t, settings, object{"to": []any{"down", "ann"}})
	e := tea.AsError(err)
	if e == nil || !strings.Contains(e.Message, "down: ") || !strings.Contains(e.Message, "sent to ann") || e.Details["not_sent"] != false || e.Details["outcome_known"] != true {
		t.Errorf("one of two: %v %v", err, e.Details)
	}
}

func TestMessageWithAKeyIsSentOnce(t *testing.T) {
	t.Parallel()
	address, got := sink(t, http.StatusOK, "")
	settings := object{"state": t.TempDir(), "targets": object{"ops": object{"webhook": object{"url": address}}, "down": object{"webhook": object{"url": "http://127.0.0.1:1"}}}}
	ids := map[any]bool{}
	for i, want := range []string{"sent", "duplicates", "duplicates"} {
		r, err := send(t, settings, object{"key": "pump 7"})
		if diff := cmp.Diff([]any{"ops"}, r[want]); err != nil || diff != "" {
			t.Errorf("call %d: %v, %s (-want +got):\n%s", i, err, want, diff)
		}
		ids[r["id"]] = true
	}
	if len(got) != 1 || len(ids) != 1 {
		t.Errorf("%d messages, ids %v", len(got), ids)
	}
	for _, to := range []any{"down", []any{"ops", "down"}} { // what fails can be repeated, what was sent is not
		if _, err := send(t, settings, object{"to": to, "key": "pump 8"}); err == nil {
			t.Errorf("a message to %v was sent", to)
		}
	}
	if r, err := send(t, settings, object{"key": "pump 8"}); err != nil || len(r["duplicates"].([]any)) != 1 || len(got) != 2 {
		t.Errorf("%v %v, %d messages", r, err, len(got))
	}
	if r, err := send(t, settings, object{"key": "pump 7", "window_seconds": 1e-9}); err == nil {
		t.Errorf("a window of nothing: %v", r)
	}
	settings["state"] = "/dev/null/x"
	if _, err := send(t, settings, object{"key": "pump 9"}); err == nil || tea.AsError(err).Details["not_sent"] != true || !strings.Contains(err.Error(), "settings.notify.state") {
		t.Errorf("without a directory: %v", err)
	}
}

// A key that was kept while the clock was years ahead does not hide messages for years.
func TestKeyOfTheFutureExpires(t *testing.T) {
	t.Parallel()
	address, got := sink(t, http.StatusOK, "")
	dir := t.TempDir()
	settings := object{"state": dir, "targets": object{"ops": object{"webhook": object{"url": address}}}}
	message := object{"key": "pump 7", "window_seconds": 60}
	if _, err := send(t, settings, message); err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(keys) != 1 {
		t.Fatal(keys, err)
	}
	future := time.Now().Add(4 * 365 * 24 * time.Hour)
	if err := os.Chtimes(keys[0], future, future); err != nil {
		t.Fatal(err)
	}
	if r, err := send(t, settings, message); err != nil || len(r["duplicates"].([]any)) != 1 {
		t.Errorf("within the window: %v %v", r, err)
	}
	info, err := os.Stat(keys[0])
	if err != nil || info.ModTime().After(time.Now()) || len(got) != 1 {
		t.Errorf("the window ends 60 seconds after %v, %d messages, %v", info.ModTime(), len(got), err)
	}
}

// With wrong settings a message never counts as sent, and the error says where to look.
func TestWrongSettingsOfEachServiceAreErrors(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch strings.Split(r.URL.Path, "/")[1] {
		case "denied":
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"errcode": "M_UNKNOWN_TOKEN", "error": "Invalid access token passed."}`) // as Synapse
		case "missing":
			w.WriteHeader(http.StatusNotFound)
		case "moved":
			http.Redirect(w, r, "/other", http.StatusTemporaryRedirect)
		case "other":
			_, _ = io.WriteString(w, `{"status": "up"}`)
		case "text":
			_, _ = io.WriteString(w, "OK")
		}
	}))
	t.Cleanup(s.Close)
	closed := httptest.NewServer(nil)
	closed.Close()
	const where = "; check settings.notify.targets.ops"
	for name, settings := range map[string]object{
		"ntfy": {"token": "tk_0123456789"}, "slack": {}, "teams": {}, "telegram": {"token": "1234:secret", "chat": "1"}, "matrix": {"token": "syt_0123456789", "room": "!r:x"}, "webhook": {},
	} {
		for url, want := range map[string]string{
			s.URL + "/denied/x": "HTTP 401: Invalid access token passed" + where, s.URL + "/missing/x": where, s.URL + "/moved/x": "set url to the address it names", closed.URL + "/x": where, "http://no-such-host.invalid/x": where,
			s.URL + "/other/x": "so it is from another service; check url", s.URL + "/text/x": "so it is from another service; check url", "ops.example/x": "url",
		} {
			settings["url"] = url
			r, err := send(t, to(name, settings), object{})
			if silent := name == "slack" || name == "teams" || name == "webhook"; silent && strings.Contains(want, "another service") {
				want = "" // their answers are not specified
			}
			if got := fmt.Sprint(err); (err == nil) != (want == "") || !strings.Contains(got, want) {
				t.Errorf("%s at %s: %v, %v, want %q", name, url, r, err, want)
			}
		}
		settings["url"], settings["tokens"] = s.URL+"/other/x", "x"
		if _, err := send(t, to(name, settings), object{}); err == nil || !strings.Contains(err.Error(), "tokens") {
			t.Errorf("%s with an unknown key: %v", name, err)
		}
	}
	for server, want := range map[string]string{closed.Listener.Addr().String(): where, "no-such-host.invalid:587": where, strings.TrimPrefix(s.URL, "http://"): where} {
		settings := to("email", object{"server": server, "from": "a@b.c", "to": []any{"a@b.c"}})
		settings["targets"].(object)["ops"].(object)["timeout_seconds"] = 0.5
		if _, err := send(t, settings, object{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("email by %s: %v", server, err)
		}
	}
}

func TestMistakesInSettings(t *testing.T) {
	t.Parallel()
	hook := object{"webhook": object{"url": "http://x"}}
	for name, c := range map[string]struct {
		settings object
		want     string
	}{
		"none":      {object{"targets": object{"a": object{}}}, "needs ntfy, email"},
		"two":       {object{"targets": object{"a": object{"webhook": object{"url": "http://x"}, "teams": object{"url": "http://x"}}}}, "only one of"},
		"name":      {object{"targets": object{"a/b": hook}}, "must match the pattern"},
		"url":       {to("webhook", object{"url": "ftp://x"}), "expected http"},
		"topic":     {to("ntfy", object{"url": "https://ntfy.sh"}), "topic is missing"},
		"telegram":  {to("telegram", object{"token": "t"}), "telegram.chat is missing"},
		"matrix":    {to("matrix", object{"url": "https://x", "room": "!r"}), "matrix.token is missing"},
		"room":      {to("matrix", object{"url": "https://x", "token": "t", "room": "#pumps:x"}), "expected the id of a room"},
		"password":  {to("email", object{"server": "x:25", "from": "a@b.c", "to": []any{"a@b.c"}, "password": "x"}), "or neither"},
		"email":     {to("email", object{"server": "mail.example.com", "from": "a@b.c", "to": []any{"a@b.c"}}), "HOST:PORT"},
		"sender":    {to("email", object{"server": "x:25", "from": "a@b.c\r\nBcc: x@y.z", "to": []any{"a@b.c"}}), "email.from"},
		"recipient": {to("email", object{"server": "x:25", "from": "a@b.c", "to": []any{"nobody"}}), "email.to"},
		"quiet":     {object{"targets": object{"a": object{"webhook": object{"url": "http://x"}, "quiet": object{"from": "25:00", "to": "06:00"}}}}, "such as 22:00"},
		"zone":      {object{"targets": object{"a": object{"webhook": object{"url": "http://x"}, "quiet": object{"from": "22:00", "to": "06:00", "timezone": "Mars/Base"}}}}, "such as Europe/Berlin"},
		"questions": {object{"targets": object{"a": hook}, "questions": object{"to": []any{"b"}}}, "questions.to[0]: is not in targets"},
		"unknown":   {object{"target": object{}}, "target"},
	} {
		if _, err := send(t, c.settings, object{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	settings := object{"notify": to("webhook", object{"url": "http://127.0.0.1:1"})}
	teatest.Conformance(t, notify.Bundle(),
		teatest.Request{Action: "notify.send", Settings: settings, Params: object{"to": "ops", "title": "a", "message": "b"}},
		teatest.Request{Action: "notify.send", Settings: settings, Params: object{"to": []any{"bob"}, "title": "a", "message": "b"}},
	)
}
