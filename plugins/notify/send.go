package notify

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

// Client sends messages with the settings of one workflow. It is safe for concurrent
// use.
type Client struct {
	settings Settings
	now      func() time.Time
}

func open(s tea.Settings) (*Client, error) {
	c := &Client{now: time.Now}
	if err := s.Decode(settingsKey, &c.settings); err != nil {
		return nil, err
	}
	return c, c.settings.open()
}

// Action is a button or a link.
type Action struct {
	Label string `json:"label" maxLength:"200" doc:"its text"`
	URL   string `json:"url" maxLength:"2000" doc:"its address: http, https, mailto or tel"`
	Post  bool   `json:"post,omitempty" doc:"the button of an ntfy message sends a POST request instead of opening the address"`
}

// SendParams are the parameters of notify.send.
type SendParams struct {
	To            any      `json:"to" doc:"name of a target in settings.notify.targets, or a list of names"`
	Title         string   `json:"title" maxLength:"500" doc:"title, in one line"`
	Message       string   `json:"message" maxLength:"100000" doc:"plain text; services with a limit get its beginning"`
	Priority      string   `json:"priority,omitempty" enum:"min,low,default,high,urgent" doc:"priority; default is default"`
	URL           string   `json:"url,omitempty" maxLength:"2000" doc:"address that the message leads to: http, https, mailto or tel"`
	Actions       []Action `json:"actions,omitempty" doc:"buttons or links; ntfy shows the first three"`
	Key           string   `json:"key,omitempty" maxLength:"500" doc:"what the message is about: a target gets one message with the same key within window_seconds"`
	WindowSeconds float64  `json:"window_seconds,omitempty" default:"86400" minimum:"1" maximum:"31536000" doc:"how long a key counts"`
}

// SendResult is the result of notify.send.
type SendResult struct {
	Success    bool     `json:"success" doc:"always true"`
	ID         string   `json:"id" doc:"id of the message, the same in all repetitions"`
	Sent       []string `json:"sent" doc:"targets that got the message"`
	Duplicates []string `json:"duplicates" doc:"targets that had got a message with the key"`
	Quiet      []string `json:"quiet" doc:"targets that got nothing because of their quiet hours"`
	QuietUntil string   `json:"quiet_until,omitempty" doc:"when the first of the quiet hours end"`
}

// Send sends a message to targets.
func (c *Client) Send(ctx context.Context, req *tea.Request, p SendParams) (SendResult, error) {
	names, err := c.targets(p.To)
	if err == nil {
		err = p.checkLinks()
	}
	if err != nil {
		return SendResult{}, err
	}
	id := cmp.Or(p.Key, req.IdempotencyKey, rand.Text())
	r := SendResult{Success: true, ID: digest(id), Sent: []string{}, Duplicates: []string{}, Quiet: []string{}}
	errs, duplicates := make([]error, len(names)), make([]bool, len(names))
	var sending sync.WaitGroup
	var quiet time.Time
	for i, name := range names {
		t := c.settings.Targets[name]
		if end := t.quiet.until(c.now(), p.Priority); !end.IsZero() {
			if r.Quiet = append(r.Quiet, name); quiet.IsZero() || end.Before(quiet) {
				quiet = end
				r.QuietUntil = end.UTC().Format(time.RFC3339)
			}
			continue
		}
		m := &message{
			ID: digest(id + "\x00" + name), Target: name, Title: oneLine(p.Title), Text: printable(p.Message), Priority: p.Priority, URL: p.URL,
			Actions: mapped(p.Actions, func(a Action) Action { return Action{oneLine(a.Label), a.URL, a.Post} }),
		}
		sending.Go(func() { duplicates[i], errs[i] = c.deliver(ctx, t, m, p) })
	}
	sending.Wait()
	for i, name := range names {
		switch {
		case errs[i] != nil || slices.Contains(r.Quiet, name):
		case duplicates[i]:
			r.Duplicates = append(r.Duplicates, name)
		default:
			r.Sent = append(r.Sent, name)
		}
	}
	return r, failure(names, errs, r.Sent)
}

// targets returns the names in the parameter to.
func (c *Client) targets(to any) ([]string, error) {
	var given []string
	switch to := to.(type) {
	case string:
		given = []string{to}
	case []any:
		for _, v := range to {
			name, ok := v.(string)
			if !ok {
				return nil, tea.Errorf(tea.ValidationError, "to: expected names of targets")
			}
			given = append(given, name)
		}
	}
	if len(given) == 0 {
		return nil, tea.Errorf(tea.ValidationError, "to: expected the name of a target, or a list of names")
	}
	return c.settings.names(given)
}

// checkLinks returns an error for an address that is incomplete, or that does more than
// open a page, a message or a call, such as javascript:.
func (p *SendParams) checkLinks() error {
	if p.URL != "" {
		if err := checkLink("url", p.URL, false); err != nil {
			return err
		}
	}
	for i, a := range p.Actions {
		if err := checkLink(fmt.Sprintf("actions[%d].url", i), a.URL, a.Post); err != nil {
			return err
		}
	}
	return nil
}

func checkLink(path, text string, post bool) error {
	schemes, names := []string{"http", "https", "mailto", "tel"}, "http:, https:, mailto: or tel:"
	if post {
		schemes, names = schemes[:2], "http: or https:"
	}
	if u, err := url.Parse(text); err == nil && slices.Contains(schemes, u.Scheme) && u.Host+u.Opaque != "" {
		return nil
	}
	return tea.Errorf(tea.ValidationError, "%s: a message cannot link to %q; use an address that begins with %s", path, plaintext.Cut(text, 100), names).NotSent()
}

// deliver sends a message to a target unless the target has got one with the key.
func (c *Client) deliver(ctx context.Context, t Target, m *message, p SendParams) (duplicate bool, err error) {
	if p.Key == "" {
		return false, t.send(ctx, m)
	}
	f, sent, err := c.claim(m.ID)
	if err != nil {
		return false, err
	}
	defer f.Close()
	if c.now().Sub(sent) < time.Duration(p.WindowSeconds*float64(time.Second)) {
		return true, nil
	}
	if err := t.send(ctx, m); err != nil {
		return false, err
	}
	if err := c.keep(f); err != nil {
		e := *tea.Errorf(tea.ResourceExhausted, "the message was sent, but its key cannot be kept: %w", err).NotSent()
		e.Details["not_sent"], e.Details["outcome_known"] = false, true
		return false, &e
	}
	return false, nil
}

// failure returns the error for targets that got nothing; nil if there are none.
func failure(names []string, errs []error, sent []string) error {
	var e *tea.Error
	var failed []any
	var texts []string
	notSent, known := len(sent) == 0, true
	for i, err := range errs {
		if err == nil {
			continue
		}
		one := tea.AsError(err)
		if e == nil {
			e = new(*one.NotSent()) // its details are a copy
		}
		text, not := names[i]+": "+one.Message, one.Details["not_sent"] == true
		if one.Type == tea.PermissionDenied || one.Type == tea.NotFound || one.Type == tea.ConnectionError && not {
			text = strings.TrimSuffix(text, ".") + "; check " + diag.Key(targetsPath, names[i])
		}
		failed, texts = append(failed, names[i]), append(texts, text)
		notSent, known = notSent && not, known && (not || one.Details["outcome_known"] == true)
		e.Retryable = e.Retryable && one.Retryable
	}
	if e == nil {
		return nil
	}
	if len(sent) > 0 {
		texts = append(texts, "sent to "+strings.Join(sent, ", "))
	}
	e.Message = strings.Join(texts, "; ")
	e.Details["failed"], e.Details["sent"] = failed, mapped(sent, func(name string) any { return name })
	// A repetition would send to the others again.
	e.Details["not_sent"], e.Details["outcome_known"] = notSent, known
	return e
}

// digest returns a text of 32 letters and digits for another one.
func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// oneLine returns a text without line breaks and other control characters.
func oneLine(text string) string { return strings.Join(strings.Fields(printable(text)), " ") }

// printable returns a text without control characters, except line breaks and tabs, and
// without characters that change the order in which others are displayed.
func printable(text string) string {
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(strings.ToValidUTF8(text, "\ufffd"))
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return -1
		}
		return r
	}, text)
}
