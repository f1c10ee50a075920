package plan

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"

	tea "github.com/the-edge-agent/tea/sdk"
)

// journal keeps an execution in the notes of its call: each failure of a subtask, and
// each change of the plan before it takes effect. The host notes the results of
// subtasks, which are calls with keys. A repeated call, in the same run or after a
// crash, continues from the notes. It is safe for concurrent use.
type journal struct {
	host tea.Host
	// begun is the content of the first note.
	begun beginning
}

// beginning is the first note of an execution.
type beginning struct {
	// Plan is the digest of the call's plan. If the call gets another plan, changes of
	// the old plan are not applied to it.
	Plan string `json:"plan"`
	// Generation counts plans, and Aborts the aborted executions, whose failed subtasks
	// are executed again.
	Generation int `json:"generation,omitempty"`
	Aborts     int `json:"aborts,omitempty"`
}

// outcome is the outcome of a subtask, and the note of a failed one; it is pending if
// it is retried.
type outcome struct {
	Status  Status        `json:"status"`
	Result  any           `json:"result,omitempty"`
	Error   string        `json:"error,omitempty"`
	Type    tea.ErrorType `json:"type,omitempty"`
	Retries int           `json:"retries,omitempty"`
	Base    int           `json:"base,omitempty"`
	Started string        `json:"started"`
	Ended   string        `json:"ended"`
	// Aborts is [beginning.Aborts] when the subtask failed.
	Aborts int `json:"aborts,omitempty"`
}

// revision is the note of a change of the plan: a new plan, or a further step.
type revision struct {
	Drop []string       `json:"drop,omitempty"`
	Add  []*Subtask     `json:"add"`
	Meta map[string]any `json:"meta,omitempty"`
}

// open reads the first note of an execution of p, and writes it if it is missing or
// for another plan. It reports whether it existed.
func (j *journal) open(ctx context.Context, p *Plan) (resumed bool, err error) {
	resumed, err = j.read(ctx, "begin", &j.begun)
	digest := p.digest()
	if err != nil || resumed && j.begun.Plan == digest {
		return resumed, err
	}
	if resumed {
		j.begun.Generation++
		j.begun.Aborts++
	}
	j.begun.Plan = digest
	return resumed, j.host.SetNote(ctx, "begin", j.begun)
}

// digest identifies the content of a plan, without its progress.
func (p *Plan) digest() string {
	hash := sha256.New()
	fmt.Fprintf(hash, "%q%q", p.Goal, p.Strategy)
	for _, s := range p.Subtasks {
		fmt.Fprintf(hash, "%q%q%q%q", s.ID, s.Description, s.Dependencies, s.Parent)
	}
	return hex.EncodeToString(hash.Sum(nil)[:12])
}

// abort records that the execution was aborted.
func (j *journal) abort(ctx context.Context) error {
	j.begun.Aborts++
	return j.host.SetNote(ctx, "begin", j.begun)
}

// recall sets a subtask to its noted outcome.
func (j *journal) recall(ctx context.Context, s *Subtask) error {
	var failure outcome
	failed, err := j.read(ctx, "failed/"+s.key, &failure)
	if err != nil {
		return err
	}
	if failed {
		j.apply(s, failure)
	}
	note, done, err := j.host.Note(ctx, tea.CallNote+s.key)
	if err != nil || !done {
		return err
	}
	v, err := note.Value()
	if err != nil {
		return tea.Errorf(tea.InternalError, "read the result of %s: %w", s.ID, err)
	}
	recorded, _ := v.(map[string]any)
	started, _ := recorded["started_at"].(string)
	ended, _ := recorded["ended_at"].(string)
	j.apply(s, outcome{
		Status: Completed, Result: trimmed(recorded["result"]), Retries: failure.Retries, Started: started, Ended: ended,
	})
	return nil
}

func (j *journal) setOutcome(ctx context.Context, s *Subtask, o outcome) error {
	return j.host.SetNote(ctx, "failed/"+s.key, o)
}

// asked returns the keys of the subtasks that had asked a question before a failure
// could change the plan.
func (j *journal) asked(ctx context.Context) (map[string]bool, error) {
	keys := map[string]bool{}
	_, err := j.read(ctx, "asked", &keys)
	return keys, err
}

func (j *journal) setAsked(ctx context.Context, keys map[string]bool) error {
	return j.host.SetNote(ctx, "asked", keys)
}

func (j *journal) revisionKey(n int) string {
	return fmt.Sprintf("revision/%d/%d", j.begun.Generation, n)
}

func (j *journal) revision(ctx context.Context, n int) (r revision, found bool, err error) {
	found, err = j.read(ctx, j.revisionKey(n), &r)
	return r, found, err
}

func (j *journal) setRevision(ctx context.Context, n int, r revision) error {
	return j.host.SetNote(ctx, j.revisionKey(n), r)
}

// seen returns the subtasks whose results an earlier execution of s saw.
func (j *journal) seen(ctx context.Context, s *Subtask) (set string, found bool, err error) {
	found, err = j.read(ctx, "seen/"+s.key, &set)
	return set, found, err
}

func (j *journal) setSeen(ctx context.Context, s *Subtask, set string) error {
	return j.host.SetNote(ctx, "seen/"+s.key, set)
}

func (j *journal) read(ctx context.Context, key string, into any) (found bool, err error) {
	note, found, err := j.host.Note(ctx, key)
	if err != nil || !found {
		return false, err
	}
	if err := note.Decode(into); err != nil {
		return false, tea.Errorf(tea.InternalError, "read the note %s: %w", key, err)
	}
	return true, nil
}

// apply sets the outcome of a subtask. A subtask that failed before the execution was
// aborted is executed again.
func (j *journal) apply(s *Subtask, o outcome) {
	s.RetryCount, s.base = o.Retries, o.Base
	if o.Status == Failed && o.Aborts < j.begun.Aborts {
		s.RetryCount++
		s.base = s.RetryCount
		return
	}
	s.Status, s.Result, s.Error, s.ErrorType = o.Status, o.Result, o.Error, o.Type
	s.StartedAt, s.CompletedAt = o.Started, o.Ended
}

// keyOf returns the key for the calls of a subtask, which allows only some characters:
// the id, or its allowed characters with a hash. In later revisions it includes the
// revision's number.
func keyOf(id string, revision int) string {
	kept := make([]byte, 0, maxKept)
	for _, c := range id {
		switch {
		case len(kept) == maxKept:
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-':
			kept = append(kept, byte(c))
		case len(kept) == 0 || kept[len(kept)-1] != '_':
			kept = append(kept, '_')
		}
	}
	key := string(kept)
	if key != id {
		sum := sha256.Sum256([]byte(id))
		key += "@" + hex.EncodeToString(sum[:6])
	}
	if revision > 0 {
		key = fmt.Sprintf("%s@%d", key, revision)
	}
	return key
}

// maxKept is the maximum number of characters of an id in its key.
const maxKept = 60

// bits is a set of the places of subtasks in a plan.
type bits []byte

func (b bits) has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

func (b bits) add(i int) bits {
	for len(b) <= i/8 {
		b = append(b, 0)
	}
	b[i/8] |= 1 << (i % 8)
	return b
}

func (b bits) text() string { return base64.RawStdEncoding.EncodeToString(b) }

func parseBits(text string) (bits, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil, tea.Errorf(tea.InternalError, "read a note of the subtasks that were finished: %w", err)
	}
	return b, nil
}
