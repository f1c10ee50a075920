package server

import (
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/cmd/internal/runview"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// maxAnswer is the maximum size of an answer.
const maxAnswer = 64 << 10

// button is an answer that has a button.
type button struct {
	label string
	value any
}

// choicesOf returns the answers that have buttons; nil if the answer is typed.
func choicesOf(i flow.Interrupt) (list []button) {
	schema, _ := i.Schema.(map[string]any)
	if len(i.Choices) == 0 && schema["type"] == "boolean" {
		return []button{{"yes", true}, {"no", false}}
	}
	for _, v := range i.Choices {
		label, ok := v.(string)
		if !ok {
			label = value.Brief(v)
		}
		list = append(list, button{plaintext.Cut(label, 100), v})
	}
	return list
}

// mostButtons is how many answers a message has buttons for. More are on the page.
const mostButtons = 3

// answerActions returns the buttons of a message, whose links answer a question.
func (s *server) answerActions(run, target string, i flow.Interrupt, until time.Time) ([]any, error) {
	if s.base == "" {
		return []any{}, nil
	}
	path, err := s.answerPath(run, target, i, until)
	if err != nil {
		return nil, err
	}
	link := s.base + path
	list := choicesOf(i)
	if len(list) == 0 || len(list) > mostButtons {
		return []any{map[string]any{"label": "Answer", "url": link}}, nil
	}
	var actions []any
	for n, c := range list {
		actions = append(actions, map[string]any{"label": c.label, "url": fmt.Sprintf("%s?choice=%d", link, n+1), "post": true})
	}
	return actions, nil
}

// answerPath returns the path of a link that answers a question.
func (s *server) answerPath(run, target string, i flow.Interrupt, until time.Time) (string, error) {
	made := make([]byte, sha256.Size)
	_, _ = rand.Read(made) // it never fails
	key, err := s.keyOf(&s.led.state.linkKey, made, &entry{LinkKey: made})
	if err != nil {
		return "", err
	}
	expiry := strconv.FormatInt(until.Unix(), 36)
	return "/answer/" + strings.Join([]string{run, target, expiry, signature(key, run, target, expiry, i)}, "."), nil
}

// keyOf returns the known key. If there is none, it records e, which contains made.
func (s *server) keyOf(known *[]byte, made []byte, e *entry) ([]byte, error) {
	s.mu.Lock()
	if key := *known; key != nil {
		s.mu.Unlock()
		return key, nil
	}
	b, err := s.led.add(true, e)
	s.mu.Unlock()
	if err == nil {
		err = b.wait()
	}
	return made, err
}

// signature returns the signature of a link. It covers when the question was asked, so
// that a link answers no later question with the same id.
func signature(key []byte, run, target, expiry string, i flow.Interrupt) string {
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s\x00%s\x00%s\x00%s\x00%d", run, target, expiry, i.ID, i.AskedAt.UnixNano())
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

var (
	errLinkExpired = errors.New("the link has expired")
	errLinkUsed    = errors.New("the question was already answered, its run has ended, or the link is wrong")
)

// serveAnswer shows a question to GET, and takes its answer from POST. A GET request
// answers nothing, because programs follow the links in messages. The link is the
// permission.
func (s *server) serveAnswer(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(r.PathValue("token"), ".")
	if len(parts) != 4 {
		showAnswer(w, http.StatusGone, "tea", errLinkUsed.Error(), "")
		return
	}
	run, target, expiry := parts[0], parts[1], parts[2]
	by, allowed := s.answersAs(target)
	s.mu.Lock()
	key := s.led.state.linkKey
	s.mu.Unlock()
	contents, i, err := s.pendingQuestion(run, func(i flow.Interrupt) bool {
		return key != nil && hmac.Equal([]byte(parts[3]), []byte(signature(key, run, target, expiry, i)))
	})
	switch at, _ := strconv.ParseInt(expiry, 36, 64); {
	case i == nil || !allowed:
		err = errLinkUsed
	case at <= time.Now().Unix():
		err = errLinkExpired
	}
	if err != nil {
		showAnswer(w, http.StatusGone, "tea", err.Error(), "")
		return
	}
	given := cmp.Or(r.URL.Query().Get("choice"), r.PostFormValue("choice"))
	title := contents.Header.Workflow
	if r.Method != http.MethodPost {
		showAnswer(w, http.StatusOK, title, i.Question, answerForm(*i, given))
		return
	}
	answer, err := answerOf(*i, given, r.PostFormValue("answer"))
	if err != nil {
		showAnswer(w, http.StatusUnprocessableEntity, title, i.Question+"\n\n"+err.Error(), answerForm(*i, ""))
		return
	}
	resume := &resumption{By: by}
	if resume.Answers, err = s.seal(map[string]any{i.ID: answer}); err == nil {
		resume.questions = []string{i.ID}
		_, err = s.resume(contents, resume)
	}
	switch {
	case errors.Is(err, errBusy), errors.Is(err, errEnded), errors.Is(err, errAnswered):
		showAnswer(w, http.StatusGone, title, errLinkUsed.Error(), "")
	case err != nil:
		showAnswer(w, s.prepare(w, err), title, s.svc.Hide(err.Error()), "")
	default:
		s.svc.Log.Info("the question "+i.ID+" of run "+run+" was answered by "+by, "run", run, "workflow", title)
		showAnswer(w, http.StatusOK, title, "Thank you. The answer was received.", "")
	}
}

// answerOf returns the value of a choice, or of a typed answer.
func answerOf(i flow.Interrupt, given, text string) (any, error) {
	if given == "" {
		return runview.ParseAnswer(i, strings.TrimSpace(text))
	}
	list := choicesOf(i)
	n, err := strconv.Atoi(given)
	if err != nil || n < 1 || n > len(list) {
		return nil, errors.New("expected one of the answers")
	}
	return list[n-1].value, i.Check(list[n-1].value)
}

// addTo records in an item who answered the questions, and when. It copies the maps,
// because other items share them.
func (r *resumption) addTo(next *item) {
	if len(r.questions) == 0 {
		return
	}
	by, at := maps.Clone(next.AnsweredBy), maps.Clone(next.AnsweredAt)
	if at == nil {
		at = map[string]time.Time{}
	}
	if by == nil && r.By != "" {
		by = map[string]string{}
	}
	for _, id := range r.questions {
		at[id] = next.At.UTC()
		if r.By != "" {
			by[id] = r.By
		}
	}
	next.AnsweredBy, next.AnsweredAt = by, at
}

// answerForm returns the form for an answer. A given choice is the only button.
func answerForm(i flow.Interrupt, given string) string {
	list := choicesOf(i)
	form := `<form method="post">`
	if len(list) == 0 {
		form += `<p><textarea name="answer" rows="4" cols="30" autofocus></textarea></p><p><button>Answer</button></p>`
	}
	for n, c := range list {
		if id := strconv.Itoa(n + 1); given == "" || given == id {
			form += `<p><button name="choice" value="` + id + `">` + html.EscapeString(c.label) + `</button></p>`
		}
	}
	return form + `</form>`
}

// showAnswer answers with a page that needs no script.
func showAnswer(w http.ResponseWriter, status int, title, text, form string) {
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	header.Set("Content-Security-Policy", "default-src 'none'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers send the form without its origin
	header.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	body := strings.ReplaceAll(html.EscapeString(text), "\n", "<br>")
	_, _ = fmt.Fprintf(w, `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>%s</title></head><body><h1>%s</h1><p>%s</p>%s</body></html>`,
		html.EscapeString(title), html.EscapeString(title), body, form) // the client is gone
}
