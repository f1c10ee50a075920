package notify

import (
	"cmp"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

const (
	settingsKey = "notify"
	targetsPath = "settings.notify.targets"
)

// Settings are the settings under settings.notify.
type Settings struct {
	Targets map[string]Target `json:"targets,omitempty" doc:"who or what can get messages, by name"`
	// Questions is read by tea serve.
	Questions *Questions `json:"questions,omitempty" doc:"who is asked when a run in tea serve waits for an answer"`
	State     string     `json:"state,omitempty" format:"path" doc:"directory where the keys of sent messages are kept; default: tea/notify in $XDG_STATE_HOME, or in ~/.local/state"`
}

// JSONSchema returns the schema, which only allows target names that can be part of a link.
func (Settings) JSONSchema() *schema.Schema {
	type plain Settings
	return schema.With[plain](`{"allOf": [{"properties": {"targets": {"propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,64}$"}}}}]}`)
}

// Questions says who is asked.
type Questions struct {
	To            []string   `json:"to" minItems:"1" keyOf:"/targets" doc:"names of the targets that are asked first"`
	Escalate      []Escalate `json:"escalate,omitempty" doc:"who is asked next if nobody has answered"`
	Priority      string     `json:"priority,omitempty" enum:"min,low,default,high,urgent" doc:"priority of the messages; default high"`
	ExpireSeconds float64    `json:"expire_seconds,omitempty" minimum:"60" maximum:"31536000" doc:"how long the links are valid, if the question has no time limit; default 7 days"`
}

// Escalate says who is asked after a time without an answer.
type Escalate struct {
	AfterSeconds float64  `json:"after_seconds" minimum:"1" doc:"time to wait for an answer from the previous targets"`
	To           []string `json:"to" minItems:"1" keyOf:"/targets" doc:"names of the targets that are asked next"`
}

// Target is where messages go: exactly one service.
type Target struct {
	Ntfy     *Ntfy     `json:"ntfy,omitempty" doc:"a topic of an ntfy server"`
	Email    *Email    `json:"email,omitempty" doc:"e-mail over SMTP"`
	Slack    *Hook     `json:"slack,omitempty" doc:"an incoming webhook of Slack"`
	Teams    *Hook     `json:"teams,omitempty" doc:"a webhook of a workflow of Microsoft Teams"`
	Telegram *Telegram `json:"telegram,omitempty" doc:"a chat of Telegram, by a bot"`
	Matrix   *Matrix   `json:"matrix,omitempty" doc:"a room of Matrix"`
	Webhook  *Webhook  `json:"webhook,omitempty" doc:"a POST request with JSON"`

	Quiet          *Quiet  `json:"quiet,omitempty" doc:"hours without messages"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" default:"15" minimum:"0.01" maximum:"300" doc:"limit for one message"`
	CAFile         string  `json:"ca_file,omitempty" format:"path" doc:"certificates in PEM format that are trusted in addition to the system's"`

	quiet quiet
	service
}

// JSONSchema returns the schema, which requires exactly one service.
func (Target) JSONSchema() *schema.Schema {
	type plain Target
	return schema.With[plain](`{"oneOf": [{"required": ["ntfy"]}, {"required": ["email"]}, {"required": ["slack"]}, {"required": ["teams"]},
		{"required": ["telegram"]}, {"required": ["matrix"]}, {"required": ["webhook"]}]}`)
}

// Quiet is a time of the day without messages.
type Quiet struct {
	From     string `json:"from" pattern:"^([01]?[0-9]|2[0-3]):[0-5][0-9]$" doc:"begin, such as 22:00"`
	To       string `json:"to" pattern:"^([01]?[0-9]|2[0-3]):[0-5][0-9]$" doc:"end, such as 06:30"`
	Timezone string `json:"timezone,omitempty" format:"timezone" doc:"time zone, such as Europe/Berlin; default: the machine's"`
	Passes   string `json:"passes,omitempty" enum:"low,default,high,urgent" doc:"the lowest priority that is sent anyway; default urgent"`
}

// priorities are the priorities in ascending order.
var priorities = []string{"min", "low", "default", "high", "urgent"}

// rank returns 1 for the lowest and 5 for the highest priority.
func rank(priority string) int { return slices.Index(priorities, cmp.Or(priority, "default")) + 1 }

// open checks the settings and prepares the targets.
func (s *Settings) open() error {
	for _, name := range slices.Sorted(maps.Keys(s.Targets)) {
		t, path := s.Targets[name], diag.Key(targetsPath, name)
		if err := t.open(); err != nil {
			e := *tea.AsError(err)
			e.Message = path + ": " + e.Message
			return &e
		}
		s.Targets[name] = t
	}
	return nil
}

func mapped[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, a := range list {
		out[i] = f(a)
	}
	return out
}

// names returns the names of targets without repetitions. An unknown one is an error.
func (s *Settings) names(given []string) ([]string, error) {
	var list []string
	for _, name := range given {
		if _, ok := s.Targets[name]; !ok {
			return nil, tea.Errorf(tea.NotFound, "%s has no target %q%s", targetsPath, name, diag.Ending(name, slices.Sorted(maps.Keys(s.Targets)))).NotSent()
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// open prepares the service of a target.
func (t *Target) open() (err error) {
	timeout := time.Duration(cmp.Or(t.TimeoutSeconds, 15) * float64(time.Second))
	switch {
	case t.Ntfy != nil:
		t.service, err = t.Ntfy.open(t.CAFile, timeout)
	case t.Email != nil:
		t.service, err = t.Email.open(t.CAFile, timeout)
	case t.Slack != nil:
		t.service, err = t.Slack.open(t.CAFile, timeout, slack)
	case t.Teams != nil:
		t.service, err = t.Teams.open(t.CAFile, timeout, teams)
	case t.Telegram != nil:
		t.service, err = t.Telegram.open(t.CAFile, timeout)
	case t.Matrix != nil:
		t.service, err = t.Matrix.open(t.CAFile, timeout)
	default: // the schema requires one
		t.service, err = t.Webhook.open(t.CAFile, timeout)
	}
	if err == nil && t.Quiet != nil {
		t.quiet, err = t.Quiet.parse()
	}
	return err
}

// quiet is a parsed [Quiet]: minutes since midnight.
type quiet struct {
	from, to int
	zone     *time.Location
	passes   int
}

func (q *Quiet) parse() (p quiet, err error) {
	for text, minutes := range map[string]*int{q.From: &p.from, q.To: &p.to} {
		at, err := time.Parse("15:04", text)
		if err != nil {
			return p, tea.Errorf(tea.ValidationError, "quiet: expected a time such as 22:00, got %q", text)
		}
		*minutes = at.Hour()*60 + at.Minute()
	}
	if q.From == q.To {
		return p, tea.Errorf(tea.ValidationError, "quiet: from and to are equal")
	}
	if p.zone, err = time.LoadLocation(cmp.Or(q.Timezone, "Local")); err != nil {
		return p, tea.Errorf(tea.ValidationError, "quiet: this machine does not know the time zone %q; install tzdata", q.Timezone)
	}
	p.passes = rank(cmp.Or(q.Passes, "urgent"))
	return p, nil
}

// until returns the end of the quiet time in which a message falls; zero if it can be
// sent. It goes minute by minute, because the clock can change to or from summer time.
func (q quiet) until(now time.Time, priority string) (end time.Time) {
	if q.zone == nil || rank(priority) >= q.passes {
		return end
	}
	for at := now.In(q.zone).Truncate(time.Minute); ; at = at.Add(time.Minute) {
		minute := at.Hour()*60 + at.Minute()
		if from, to := minute >= q.from, minute < q.to; !(from && to || q.from > q.to && (from || to)) {
			return end
		}
		end = at.Add(time.Minute)
	}
}

// address checks an http or https address.
func address(key, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, tea.Errorf(tea.ValidationError, "%s: expected http://HOST/PATH or https://HOST/PATH", key)
	}
	return u, nil
}

// required returns an error for the first missing value. keys are in the order of values.
func required(keys string, values ...string) error {
	for i, key := range strings.Fields(keys) {
		if values[i] == "" {
			return tea.Errorf(tea.ValidationError, "%s is missing", key)
		}
	}
	return nil
}
