package spec

import (
	"cmp"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/internal/diagcode"
	"github.com/the-edge-agent/tea/host/internal/source"
	"github.com/the-edge-agent/tea/internal/cron"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Serve is the serve section: when `tea serve` starts runs of the workflow, and how
// many.
type Serve struct {
	diag.Pos
	Triggers []Trigger
	// MaxRunning and MaxQueue bound the running and the waiting runs; nil = default.
	MaxRunning, MaxQueue *int
	// CountWaiting determines whether runs that wait for an answer count as
	// running; nil = default.
	CountWaiting *bool
	// Order is "fifo", "lifo" or "" for the default.
	Order string
	// Overlap is "queue", "skip", "cancel_running" or "" for the default.
	Overlap string
	// Key is the template of the deduplication key; nil = none.
	Key *Tree
	// KeyTime is how long a key is kept; nil = default.
	KeyTime *time.Duration
	// Retry repeats failed runs; nil = never.
	Retry *Retry
	// KeepRuns and KeepTime bound the runs that are kept; 0 = default.
	KeepRuns int
	KeepTime time.Duration
	// Tokens and USD are the budget per day; 0 = no limit.
	Tokens int64
	USD    float64
}

// TriggerKind is the kind of event that starts a run.
type TriggerKind string

// The kinds of triggers.
const (
	TriggerCron    TriggerKind = "cron"
	TriggerEvery   TriggerKind = "every"
	TriggerAtStart TriggerKind = "at_start"
	TriggerWebhook TriggerKind = "webhook"
	TriggerWatch   TriggerKind = "watch"
	TriggerMQTT    TriggerKind = "mqtt"
	TriggerOnRun   TriggerKind = "on_run"
	TriggerPoll    TriggerKind = "poll"
	TriggerStream  TriggerKind = "stream"
)

// Trigger is one trigger. Kind determines which of the pointers is set; none is for
// at_start.
type Trigger struct {
	diag.Pos
	Kind TriggerKind
	// Name identifies the trigger across restarts.
	Name string
	// Input maps the event to the input; nil = default. Key is as in [Serve].
	Input, Key *Tree

	Timer   *Timer
	Webhook *Webhook
	Watch   *Watch
	MQTT    *MQTT
	OnRun   *OnRun
	Values  *Values
}

// Timer is a trigger of the kind cron or every.
type Timer struct {
	Cron string
	// Schedule has the times of cron; nil if the expression is not valid.
	Schedule *cron.Schedule
	// Zone is the name of the time zone of cron.
	Zone string
	// Every is the interval of every; otherwise 0.
	Every time.Duration
	// CatchUp is "skip", "one", "all" or "" for the default.
	CatchUp string
	// Jitter is the longest random delay.
	Jitter time.Duration
}

// Webhook is a trigger of the kind webhook.
type Webhook struct {
	Path string
	// Signature is "github", "stripe", "hmac", "none" or "".
	Signature string
	// Secret names the secret of the signature.
	Secret string
	// Header is the header of the signature, for hmac.
	Header string
	// Replay is the age beyond which a signed request is refused; nil = default.
	Replay *time.Duration
}

// Watch is a trigger of the kind watch. Pattern selects files.
type Watch struct{ Dir, Pattern string }

// MQTT is a trigger of the kind mqtt.
type MQTT struct {
	Topic, Broker, Username, ResultTopic string
	// Password names the secret that is the password.
	Password string
	QoS      int
	// Retained is "ignore", "once", "always" or "" for the default.
	Retained string
}

// OnRun is a trigger of the kind on_run. Statuses are the outcomes that start a run;
// empty = default.
type OnRun struct {
	Workflow string
	Statuses []string
}

// triggerOptions are the keys of a trigger that only some kinds have.
var triggerOptions = []struct {
	key   string
	kinds []TriggerKind
}{
	{"timezone", []TriggerKind{TriggerCron}},
	{"catch_up", []TriggerKind{TriggerCron, TriggerEvery}},
	{"jitter_seconds", []TriggerKind{TriggerCron, TriggerEvery}},
	{"signature", []TriggerKind{TriggerWebhook}},
	{"secret", []TriggerKind{TriggerWebhook}},
	{"header", []TriggerKind{TriggerWebhook}},
	{"replay_seconds", []TriggerKind{TriggerWebhook}},
	{"pattern", []TriggerKind{TriggerWatch}},
	{"broker", []TriggerKind{TriggerMQTT}},
	{"username", []TriggerKind{TriggerMQTT}},
	{"password_secret", []TriggerKind{TriggerMQTT}},
	{"qos", []TriggerKind{TriggerMQTT}},
	{"retained", []TriggerKind{TriggerMQTT}},
	{"result_topic", []TriggerKind{TriggerMQTT}},
	{"status", []TriggerKind{TriggerOnRun}},
	{"when", valueKinds},
	{"reset", valueKinds},
	{"fire", valueKinds},
	{"hold_seconds", valueKinds},
	{"min_interval_seconds", valueKinds},
	{"on_failure", valueKinds},
}

// triggerKinds are the kinds in the order of the reference.
var triggerKinds = []TriggerKind{TriggerCron, TriggerEvery, TriggerAtStart, TriggerWebhook, TriggerWatch, TriggerMQTT, TriggerPoll, TriggerStream, TriggerOnRun}

func serveSection(g *grammar) *section {
	return &section{title: "serve", doc: "When `tea serve` starts runs of the workflow, and how many. It is not part of the workflow's digest.", keys: []*key{
		{name: "triggers", shape: listOf(object(g.trigger)), doc: "What starts a run, besides requests to the API."},
		{name: "max_running", shape: integer(1), fallback: "8", doc: "Maximum number of runs at a time."},
		{name: "count_waiting", shape: boolean(), fallback: "true", doc: "Whether runs that wait for an answer count as running."},
		{name: "max_queue", shape: integer(0), fallback: "1000", doc: "Maximum number of runs that wait for their turn; further ones are refused."},
		{name: "order", shape: oneOf("fifo", "lifo"), fallback: "fifo", doc: "Which waiting run is next: the oldest or the newest."},
		{name: "overlap", shape: oneOf("queue", "skip", "cancel_running"), fallback: "queue", doc: "What happens to a new run while max_running runs are running: it waits, it is not started, or it replaces the oldest one."},
		{name: "key", shape: written(), doc: "Template of a deduplication key over event: events with the same key start one run."},
		{name: "key_seconds", shape: seconds().requirePositive(), fallback: "86400", doc: "How long a key is remembered."},
		{name: "retry", shape: object(g.retry), doc: "Repeats a failed run from the node that failed. After three equal failures in a row the run is parked."},
		{name: "keep_runs", shape: integer(1), fallback: "100", doc: "How many runs that are done are kept, and how many that have failed or were stopped."},
		{name: "keep_seconds", shape: seconds().requirePositive(), fallback: "30 days", doc: "How long runs that have ended are kept."},
		{name: "budget_per_day", shape: object(g.dayBudget), doc: "Limits for all runs of a day, in local time. When one is reached, no further run starts until the next day."},
	}}
}

func serveFileSection(g *grammar) *section {
	return &section{title: "serve.yaml", doc: "The file serve.yaml next to the workflows, for those that have no section serve.", keys: []*key{
		{name: "workflows", shape: entriesOf(object(g.serve)), required: true, doc: "The sections serve, by the names of the workflows."},
	}}
}

// LoadServe reads a file with the serve sections of workflows, by their names. The
// diagnostics are sorted.
func LoadServe(file string, data []byte) (map[string]*Serve, diag.List) {
	l := newLoader(Options{})
	root := source.Parse(file, data, l.diags)
	if root == nil {
		return nil, *l.diags
	}
	if root.Kind != source.Map {
		l.diags.Errorf(diagcode.DocumentNoMapping, root.Pos(""), "begin with workflows:", "the document is %s, not a mapping", root.Kind)
		return nil, *l.diags
	}
	check := checker{diags: l.diags, grammar: theGrammar()}
	check.mapping(root, "", theGrammar().serveFile, "")
	d := decoder{loader: l, grammar: theGrammar()}
	sections := map[string]*Serve{}
	m := openMapping(element{node: root}, d.grammar.serveFile)
	if list := m.get("workflows"); list.is(source.Map) {
		for _, e := range list.entries() {
			if s := d.serve(e.element); s != nil {
				sections[e.key.Text] = s
			}
		}
	}
	l.diags.Sort()
	return sections, *l.diags
}

func dayBudgetSection() *section {
	return &section{title: "budget_per_day", doc: "Limits for all runs of a day.", keys: []*key{
		{name: "tokens", shape: integer(1, 1<<53), doc: "Tokens of all requests to models."},
		{name: "usd", shape: number(0).requirePositive(), doc: "Cost of these requests."},
	}}
}

func triggerSection(g *grammar) *section {
	return &section{title: "trigger", doc: "One trigger: exactly one of cron, every, at_start, webhook, watch, mqtt, poll, stream and on_run.", keys: append([]*key{
		{name: "cron", shape: str(), doc: "A cron expression: minute, hour, day of month, month and day of week, or @daily and the like. If both day fields are set, either is enough."},
		{name: "every", shape: seconds().requirePositive(), doc: "An interval."},
		{name: "at_start", shape: boolean(), doc: "The start of the server."},
		{name: "webhook", shape: str(), doc: "A POST to /hooks/ and this path."},
		{name: "watch", shape: str(), doc: "Files that appear in this directory, relative to the workflow file. Each is processed once."},
		{name: "mqtt", shape: str(), doc: "Messages of this topic, which can have the wildcards + and #."},
		{name: "on_run", shape: str(), doc: "The end of a run of the workflow with this name."},
		{name: "name", shape: str(), doc: "Identifies the trigger across restarts.", fallback: "the kind and its value"},
		{name: "timezone", shape: str(), doc: "Time zone of cron, such as Europe/Berlin.", fallback: "the time zone of the machine"},
		{name: "catch_up", shape: oneOf("skip", "one", "all"), fallback: "one", doc: "Which of the times that passed while the server was off start a run: none, one for all of them, or one for each, at most 100."},
		{name: "jitter_seconds", shape: seconds(), doc: "Longest random delay, so that many devices do not start together."},
		{name: "signature", shape: oneOf("github", "stripe", "hmac", "none"), doc: "How requests are signed. hmac is HMAC-SHA256 of the body in hexadecimal, with an optional prefix sha256=. Required, unless secret is set, which means hmac."},
		{name: "secret", shape: str(), doc: "Name of the secret of the signature, as passed with --secrets."},
		{name: "header", shape: str(), fallback: "X-Signature", doc: "Header of the signature, for hmac."},
		{name: "replay_seconds", shape: seconds().requirePositive(), fallback: "300", doc: "Age beyond which a request is refused, if its signature has a time; and how long the signature of any other request is refused a second time."},
		{name: "pattern", shape: str(), fallback: "*", doc: "Pattern of the file names, such as *.csv."},
		{name: "broker", shape: str(), fallback: defaultBroker, doc: "URL of the broker: mqtt, mqtts, ws or wss."},
		{name: "username", shape: str(), doc: "User name at the broker."},
		{name: "password_secret", shape: str(), doc: "Name of the secret that is the password at the broker."},
		{name: "qos", shape: integer(0, 2), fallback: "1", doc: "Quality of service."},
		{name: "retained", shape: oneOf("ignore", "once", "always"), fallback: "once", doc: "Which retained messages start a run: none, each once, or each at every connection to the broker."},
		{name: "result_topic", shape: str(), doc: "Topic to which the result of each run is published."},
		{name: "status", shape: listOf(oneOf("done", "failed", "waiting", "stopped")).nonEmpty(), fallback: "[done]", doc: "Outcomes that start a run, for on_run; failed includes parked runs."},
		{name: "input", shape: anyMapping(), doc: "Input of the run, with templates over event, variables and env.", fallback: "{event: \"{{ event }}\"}, or the JSON object of a webhook or message"},
		{name: "key", shape: written(), doc: "Deduplication key of this trigger."},
	}, valueKeys(g)...)}
}

func (d *decoder) serve(v element) *Serve {
	if !v.is(source.Map) {
		return nil
	}
	m := openMapping(v, d.grammar.serve)
	s := &Serve{
		Pos: m.pos(), MaxRunning: m.int("max_running"), MaxQueue: m.int("max_queue"), CountWaiting: m.bool("count_waiting"), Order: m.string("order"), Overlap: m.string("overlap"),
		Key: treeOf(m.get("key")), KeyTime: m.duration("key_seconds"), Retry: d.retry(m.get("retry")),
		KeepRuns: orZero(m.int("keep_runs")), KeepTime: orZero(m.duration("keep_seconds")),
	}
	if day := m.get("budget_per_day"); day.is(source.Map) {
		b := openMapping(day, d.grammar.dayBudget)
		s.Tokens, s.USD = int64(orZero(b.float("tokens"))), orZero(b.float("usd"))
	}
	names := map[string]bool{}
	for _, item := range m.get("triggers").items() {
		if !item.is(source.Map) {
			continue
		}
		t, ok := d.trigger(openMapping(item, d.grammar.trigger))
		if !ok {
			continue
		}
		if names[t.Name] {
			d.errorf(diagcode.KeysConflict, t.Pos, "set name: on one of them", "two triggers have the name %q", t.Name)
		}
		names[t.Name] = true
		s.Triggers = append(s.Triggers, t)
	}
	return s
}

// treeOf returns the value of a key as a Tree; nil if it is absent.
func treeOf(v element) *Tree {
	if v.node == nil {
		return nil
	}
	return newTree(v)
}

func (d *decoder) trigger(m mapping) (t Trigger, ok bool) {
	for _, kind := range triggerKinds {
		if !m.has(string(kind)) || kind == TriggerAtStart && !m.isTrue(string(kind)) {
			continue
		}
		if t.Kind != "" {
			d.conflict(m.key(string(kind)), "write a separate trigger for each", "a trigger cannot have both %s and %s", t.Kind, kind)
			continue
		}
		t.Kind = kind
	}
	if t.Kind == "" {
		d.errorf(diagcode.MissingKey, m.pos(), "add cron:, every:, at_start: true, webhook:, watch:, mqtt:, poll:, stream: or on_run:", "the trigger has no event that starts a run")
		return t, false
	}
	for _, o := range triggerOptions {
		if m.has(o.key) && !slices.Contains(o.kinds, t.Kind) {
			d.conflict(m.key(o.key), "remove it", "%s is not an option of %s", o.key, t.Kind)
		}
	}
	t.Pos = m.get(string(t.Kind)).pos()
	value := m.string(string(t.Kind))
	switch t.Kind {
	case TriggerCron, TriggerEvery:
		t.Timer = d.timer(m)
	case TriggerWebhook:
		t.Webhook = &Webhook{value, m.string("signature"), m.string("secret"), m.string("header"), m.duration("replay_seconds")}
	case TriggerWatch:
		t.Watch = &Watch{value, m.string("pattern")}
	case TriggerMQTT:
		t.MQTT = &MQTT{
			Topic: value, Broker: cmp.Or(m.string("broker"), defaultBroker), Username: m.string("username"), ResultTopic: m.string("result_topic"),
			Password: m.string("password_secret"), QoS: 1, Retained: m.string("retained"),
		}
		if qos := m.int("qos"); qos != nil {
			t.MQTT.QoS = *qos
		}
	case TriggerOnRun:
		t.OnRun = &OnRun{Workflow: value}
		for _, s := range m.texts("status") {
			t.OnRun.Statuses = append(t.OnRun.Statuses, s.Value)
		}
	case TriggerPoll, TriggerStream:
		t.Values = d.values(m, t.Kind)
		value = t.Values.Call.Uses.Value
	}
	if hint, err := t.check(); err != nil {
		d.errorf(diagcode.ValueNotAllowed, t.Pos, hint, "%v", err)
	}
	t.Input, t.Key = treeOf(m.get("input")), treeOf(m.get("key"))
	if t.Name = m.string("name"); t.Name == "" {
		t.Name = string(t.Kind)
		if value != "" && t.Kind != TriggerAtStart {
			t.Name += " " + value
		}
	}
	return t, true
}

func (d *decoder) timer(m mapping) *Timer {
	t := &Timer{Zone: m.string("timezone"), Every: orZero(m.duration("every")), CatchUp: m.string("catch_up"), Jitter: orZero(m.duration("jitter_seconds"))}
	text := m.text("cron")
	if text == nil {
		return t
	}
	t.Cron = text.Value
	pos := m.get("cron").pos()
	var hint string
	var err error
	if t.Schedule, hint, err = cron.Parse(text.Value); err != nil {
		d.errorf(diagcode.ValueNotAllowed, pos, hint, "cron: %v", err)
	}
	if _, err := time.LoadLocation(t.Zone); err != nil && hasZones() { // the server has all zones
		d.diags.Warnf(diagcode.ValueNotAllowed, pos, "use a name such as Europe/Berlin or UTC", "timezone: this machine does not know %q", t.Zone)
	}
	return t
}

// hasZones reports whether this machine knows any time zones. A browser knows none.
func hasZones() bool {
	_, err := time.LoadLocation("Europe/London")
	return err == nil
}
