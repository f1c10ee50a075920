package server

import (
	"slices"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	tea "github.com/the-edge-agent/tea/sdk"
)

// entry is a change of the ledger. It sets a value, so applying it is idempotent. A
// line of the ledger has the entries of one atomic change.
type entry struct {
	Format int `json:"format,omitempty"`
	// Safe is the size of the file that was synced when the line was written: damaged
	// data after it was never acknowledged.
	Safe   int64         `json:"safe,omitempty"`
	Item   *item         `json:"item,omitempty"`
	Try    *progress     `json:"try,omitempty"`
	End    string        `json:"end,omitempty"`
	Drop   *dropped      `json:"drop,omitempty"`
	Over   *overRun      `json:"over,omitempty"`
	Gone   string        `json:"gone,omitempty"`
	Key    *keyUse       `json:"key,omitempty"`
	Fired  *firing       `json:"fired,omitempty"`
	Paused *pausing      `json:"paused,omitempty"`
	File   *fileSeen     `json:"file,omitempty"`
	Used   *dayUse       `json:"used,omitempty"`
	Asked  *announcement `json:"asked,omitempty"`
	// LinkKey is the key of the links that answer questions.
	LinkKey []byte `json:"link_key,omitempty"`
	// PushKey is the key that identifies the server to push services. Browser is a browser
	// that was subscribed or removed.
	PushKey []byte   `json:"push_key,omitempty"`
	Browser *browser `json:"browser,omitempty"`
}

// firing is the last time of a schedule; a zero At removes it.
type firing struct {
	Trigger string    `json:"trigger"`
	At      time.Time `json:"at"`
}

// fileSeen is a file that a trigger has processed; an empty Stamp removes it.
type fileSeen struct {
	Trigger string `json:"trigger"`
	Name    string `json:"name"`
	Stamp   string `json:"stamp,omitempty"`
}

// dropped is a run that was stopped before it began, and has no checkpoint.
type dropped struct {
	ID       string    `json:"id"`
	Workflow string    `json:"workflow"`
	Trigger  string    `json:"trigger,omitempty"`
	At       time.Time `json:"at"`
	Until    time.Time `json:"until"`
}

// overRun is the server's metadata of an ended run. It is kept as long as the
// checkpoint.
type overRun struct {
	ID       string      `json:"id"`
	Trigger  string      `json:"trigger,omitempty"`
	At       time.Time   `json:"at"`
	Attempts int         `json:"attempts,omitempty"`
	Usage    *flow.Usage `json:"usage,omitempty"`
	// ErrorType is the type of the failure.
	ErrorType tea.ErrorType `json:"error_type,omitempty"`
	// Error is the beginning of the error, with masked secrets.
	Error string `json:"error,omitempty"`
	// AnsweredBy and AnsweredAt are copied to the item.
	AnsweredBy map[string]string    `json:"answered_by,omitempty"`
	AnsweredAt map[string]time.Time `json:"answered_at,omitempty"`
}

// keyUse is the run for a deduplication key.
type keyUse struct {
	Key  string `json:"key"`
	Run  string `json:"run"`
	Hash string `json:"hash,omitempty"`
	// At is when the key was used. Files of earlier versions lack it.
	At    time.Time `json:"at,omitzero"`
	Until time.Time `json:"until"`
}

// dayUse is the usage of a workflow on a day. It outlives its runs.
type dayUse struct {
	Day      string  `json:"day"`
	Workflow string  `json:"workflow"`
	Tokens   int64   `json:"tokens"`
	USD      float64 `json:"usd"`
	// Runs counts ended runs, and Failed those that failed or were parked.
	Runs   int64 `json:"runs,omitempty"`
	Failed int64 `json:"failed,omitempty"`
	// Seconds is the running time, without waits for an answer or the next attempt.
	Seconds float64  `json:"seconds,omitempty"`
	Last    *lastRun `json:"last,omitempty"`
}

// lastRun is the run of a workflow that ended last.
type lastRun struct {
	ID      string    `json:"id"`
	Status  string    `json:"status"`
	EndedAt time.Time `json:"ended_at"`
}

const (
	// maxDays is how many days of usage are kept per workflow, not counting days without
	// runs.
	maxDays = 100
	// maxDaysIdle is the number of days without a run after which usage is removed.
	maxDaysIdle = 400
)

// usedDays is the usage of a workflow by day. The last element has changed last.
type usedDays []*dayUse

// on returns the usage of a day.
func (l usedDays) on(day string) dayUse {
	for _, u := range l {
		if u.Day == day {
			return *u
		}
	}
	return dayUse{Day: day}
}

// set replaces the usage of a day.
func (l usedDays) set(u *dayUse) usedDays {
	l = append(slices.DeleteFunc(l, func(old *dayUse) bool { return old.Day == u.Day }), u)
	return l[max(0, len(l)-maxDays):]
}

// last returns the run that ended last, or nil if it is not known.
func (l usedDays) last() *lastRun {
	if len(l) == 0 {
		return nil
	}
	return l[len(l)-1].Last
}

// ledgerState is the state that results from the entries.
type ledgerState struct {
	items map[string]*item
	drops map[string]*dropped
	over  map[string]*overRun
	keys  map[string]*keyUse
	fired map[string]time.Time
	// paused has when schedules were paused.
	paused  map[string]time.Time
	files   map[string]map[string]string
	used    map[string]usedDays
	asked   map[string]*announcement
	linkKey []byte
	pushKey []byte
	// browsers are the subscribed browsers by id.
	browsers map[string]*browser
}

func newLedgerState() ledgerState {
	return ledgerState{items: map[string]*item{}, drops: map[string]*dropped{}, over: map[string]*overRun{}, keys: map[string]*keyUse{}, fired: map[string]time.Time{}, paused: map[string]time.Time{}, files: map[string]map[string]string{}, used: map[string]usedDays{}, asked: map[string]*announcement{}, browsers: map[string]*browser{}}
}

// setTime sets the time of a trigger; a zero time removes it.
func setTime(times map[string]time.Time, trigger string, at time.Time) {
	if times[trigger] = at; at.IsZero() {
		delete(times, trigger)
	}
}

func (s *ledgerState) apply(e *entry) {
	if e.Item != nil {
		s.items[e.Item.ID] = e.Item
	}
	if e.Try != nil {
		if it := s.items[e.Try.ID]; it != nil {
			it.progress = *e.Try
		}
	}
	if e.End != "" {
		delete(s.items, e.End)
	}
	if e.Drop != nil {
		s.drops[e.Drop.ID] = e.Drop
	}
	if e.Over != nil {
		s.over[e.Over.ID] = e.Over
	}
	delete(s.over, e.Gone)
	delete(s.drops, e.Gone)
	if e.Key != nil {
		s.keys[e.Key.Key] = e.Key
	}
	if e.Fired != nil {
		setTime(s.fired, e.Fired.Trigger, e.Fired.At)
	}
	if e.Paused != nil {
		setTime(s.paused, e.Paused.Trigger, e.Paused.At)
	}
	if f := e.File; f != nil {
		if s.files[f.Trigger] == nil {
			s.files[f.Trigger] = map[string]string{}
		}
		s.files[f.Trigger][f.Name] = f.Stamp
		if f.Stamp == "" {
			delete(s.files[f.Trigger], f.Name)
		}
	}
	if e.Used != nil {
		s.used[e.Used.Workflow] = s.used[e.Used.Workflow].set(e.Used)
	}
	if e.Asked != nil {
		s.asked[e.Asked.key()] = e.Asked
		if e.Asked.Gone {
			delete(s.asked, e.Asked.key())
		}
	}
	if e.LinkKey != nil {
		s.linkKey = e.LinkKey
	}
	if e.PushKey != nil {
		s.pushKey = e.PushKey
	}
	if e.Browser != nil {
		s.browsers[e.Browser.ID] = e.Browser
		if e.Browser.Gone {
			delete(s.browsers, e.Browser.ID)
		}
	}
}

// key returns a deduplication key that has not expired, nil if there is none.
func (s *ledgerState) key(name string) *keyUse {
	if k := s.keys[name]; k != nil && !time.Now().After(k.Until) {
		return k
	}
	return nil
}

// before returns entries that undo the trigger entries among the given ones.
func (s *ledgerState) before(entries []*entry) (list []*entry) {
	for _, e := range entries {
		if e.Fired != nil {
			list = append(list, &entry{Fired: &firing{e.Fired.Trigger, s.fired[e.Fired.Trigger]}})
		}
		if e.File != nil {
			list = append(list, &entry{File: &fileSeen{e.File.Trigger, e.File.Name, s.files[e.File.Trigger][e.File.Name]}})
		}
	}
	return list
}

// renewKeys makes keys that were used while the clock was ahead count from now on.
// Otherwise they would refuse runs until the clock reaches that time again.
func (s *ledgerState) renewKeys(now time.Time) {
	for name, k := range s.keys {
		if now.Before(k.At) {
			renewed := *k
			renewed.At, renewed.Until = now, now.Add(k.Until.Sub(k.At))
			s.keys[name] = &renewed
		}
	}
}

// entries returns entries that recreate the state.
func (s *ledgerState) entries(now time.Time) []*entry {
	var list []*entry
	for _, it := range s.items {
		list = append(list, &entry{Item: it, Try: &it.progress})
	}
	for _, d := range s.drops {
		if now.Before(d.Until) {
			list = append(list, &entry{Drop: d})
		}
	}
	for _, o := range s.over {
		list = append(list, &entry{Over: o})
	}
	for _, k := range s.keys {
		if now.Before(k.Until) {
			list = append(list, &entry{Key: k})
		}
	}
	for _, a := range s.asked {
		list = append(list, &entry{Asked: a})
	}
	if s.linkKey != nil {
		list = append(list, &entry{LinkKey: s.linkKey})
	}
	if s.pushKey != nil {
		list = append(list, &entry{PushKey: s.pushKey})
	}
	for _, b := range s.browsers {
		list = append(list, &entry{Browser: b})
	}
	for trigger, at := range s.fired {
		list = append(list, &entry{Fired: &firing{trigger, at}})
	}
	for trigger, at := range s.paused {
		list = append(list, &entry{Paused: &pausing{trigger, at}})
	}
	for trigger, files := range s.files {
		for name, stamp := range files {
			list = append(list, &entry{File: &fileSeen{trigger, name, stamp}})
		}
	}
	for _, days := range s.used {
		if days[len(days)-1].Day < day(now.AddDate(0, 0, -maxDaysIdle)) {
			continue
		}
		for _, u := range days {
			list = append(list, &entry{Used: u})
		}
	}
	return list
}
