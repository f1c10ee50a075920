package replay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/host/internal/spec"
	"github.com/the-edge-agent/tea/internal/execpath"
	"github.com/the-edge-agent/tea/sdk/value"
)

// End is greater than the number of any record.
const End = math.MaxUint64

// Replay is the index of a resumed run's records. The zero value is for a new
// run. Apart from [Replay.Retry] it is immutable, and safe for concurrent use.
//
// Methods with a parameter void ignore records up to that number.
type Replay struct {
	// Start is the record with which the run began; nil for a new run.
	Start *Start
	// Done reports whether the run succeeded and nothing was recorded since.
	Done bool
	// Used is the usage of the recorded part, Worked its working time.
	Used   flow.Usage
	Worked time.Duration
	// InputMerged reports whether a frame has merged the last input.
	InputMerged bool

	nodes      map[execpath.Path]*Node
	branches   map[execpath.Path]*Branch
	begins     map[execpath.Path]begin
	attempts   map[execpath.Path]int
	interrupts map[string]flow.Interrupt
	answers    map[string]any
	inputs     map[execpath.Path][]Merged
	notes      map[noteName]any
	// unreported are interrupts that were not reported, because the run continued in
	// parallel until it failed or was stopped.
	unreported map[string]bool
	// reported is the usage reported by nodes without a record.
	reported map[execpath.Path]flow.Usage
	// session and latest are the times of the first and the last record since
	// Worked was last recorded.
	session, latest time.Time
	// redone are failed branches that were run again, and their containers, with the
	// highest number of the void records.
	redone map[execpath.Path]uint64
	// seqs are the numbers of the last records; nil without retries.
	seqs map[stamp]uint64
	// begun are the containers that have a record, of their beginning or inside,
	// with the number of the first one.
	begun map[execpath.Path]uint64
	// resumeInputs are the inputs of resumes that were killed.
	resumeInputs []inputAt
}

// begin is a [Begin] record with its number.
type begin struct {
	*Begin
	seq uint64
}

type noteName struct {
	path execpath.Path
	key  string
}

// Merged is a merged input with the number of its record.
type Merged struct {
	Input
	Seq uint64
}

type inputAt struct {
	seq    uint64
	values map[string]any
}

// stamp identifies the last record of something.
type stamp struct {
	what byte
	name string
}

const (
	stampNode      = 'n' // a path
	stampBranch    = 'b' // a path
	stampInside    = '/' // a path: the last record inside it
	stampInterrupt = 'i' // an id
	stampAnswer    = 'a' // an id
	stampNote      = '=' // a path and a key
)

// New reads the records of a run; retry reports whether its failed branches are about
// to run again. The error names the unreadable record, or is a
// [*secret.MissingError].
func New(records []checkpoint.Record, secrets *secret.Set, retry bool) (*Replay, error) {
	if len(records) == 0 {
		return &Replay{}, nil
	}
	p := &Replay{
		nodes: map[execpath.Path]*Node{}, branches: map[execpath.Path]*Branch{}, begins: map[execpath.Path]begin{}, attempts: map[execpath.Path]int{},
		interrupts: map[string]flow.Interrupt{}, answers: map[string]any{}, inputs: map[execpath.Path][]Merged{},
		notes: map[noteName]any{}, begun: map[execpath.Path]uint64{}, unreported: map[string]bool{},
		reported: map[execpath.Path]flow.Usage{}, redone: map[execpath.Path]uint64{},
	}
	if retry || hasRetries(records) {
		p.seqs = map[stamp]uint64{}
	}
	for _, rec := range records {
		body := newRecord(rec.Kind)
		p.Done = false
		if body != nil {
			if err := decode(rec, body, secrets.Unseal); err != nil {
				return nil, fmt.Errorf("record %d (%s %s): %w", rec.Seq, rec.Kind, rec.Path, err)
			}
			p.add(rec, body)
			p.count(rec, body)
		}
		if p.session.IsZero() {
			p.session = rec.Time
		}
		p.latest = rec.Time
	}
	p.Worked += p.latest.Sub(p.session)
	if _, waits := newRecord(records[len(records)-1].Kind).(*Interrupt); waits {
		clear(p.unreported) // the run stopped there
	}
	return p, nil
}

// add indexes a record.
func (p *Replay) add(rec checkpoint.Record, body Record) {
	path := execpath.Path(rec.Path)
	switch b := body.(type) {
	case *Start:
		p.Start = b
	case *Node:
		p.nodes[path] = b
		p.stamp(stampNode, rec.Path, rec.Seq)
	case *Route:
		if n := p.nodes[path]; n != nil {
			n.Route = *b
		}
	case *Branch:
		p.branches[path] = b
		p.stamp(stampBranch, rec.Path, rec.Seq)
	case *Begin:
		p.begins[path] = begin{b, rec.Seq}
		p.markBegun(path, rec.Seq)
		return
	case *Attempt:
		p.attempts[path] = b.N
	case *Interrupt:
		p.interrupts[b.ID] = b.at(rec.Path)
		delete(p.answers, b.ID) // from before a retry
		p.unreported[b.ID] = true
		p.stamp(stampInterrupt, b.ID, rec.Seq)
	case *Answer:
		p.answers[b.ID] = b.Value
		p.stamp(stampAnswer, b.ID, rec.Seq)
	case *Input:
		p.InputMerged = p.InputMerged || b.FromResume
		p.inputs[path] = append(p.inputs[path], Merged{*b, rec.Seq})
	case *ResumeInput:
		p.resumeInputs, p.InputMerged = append(p.resumeInputs, inputAt{rec.Seq, b.Values}), false
	case *Note:
		p.notes[noteName{path, b.Key}] = b.Value
		p.stamp(stampNote, rec.Path+" "+b.Key, rec.Seq)
	case *Retry:
		for _, path := range b.Paths {
			p.retry(path, rec.Seq)
		}
		return
	default:
		return
	}
	p.markBegun(path.Outer(), rec.Seq)
}

// count adds the usage in a record. The usage in a status is the total of the run
// so far, including failures and interrupted work.
func (p *Replay) count(rec checkpoint.Record, body Record) {
	path := execpath.Path(rec.Path)
	switch b := body.(type) {
	case *Node:
		if isStep(path) {
			p.Used.Steps++
			p.Used = p.Used.Add(b.used()).Sub(p.reported[path])
			delete(p.reported, path)
		}
	case *Usage:
		p.Used = p.Used.Add(b.sum())
		p.reported[path] = p.reported[path].Add(b.sum())
	case *Session:
		p.Worked += p.latest.Sub(p.session)
		p.session = rec.Time
	case *Status:
		p.Done = b.Status == flow.Done
		p.resumeInputs = nil // the resume reached its end
		if b.Status == flow.Waiting {
			clear(p.unreported)
		}
		if b.Usage == nil {
			return
		}
		steps := p.Used.Steps
		p.Used, p.Worked = b.Usage.sum(), time.Duration(b.Usage.Seconds*float64(time.Second))
		p.Used.Steps = steps
		clear(p.reported)
		p.session = rec.Time
	}
}

// isStep reports whether a node's record counts as a step; the decision at the
// beginning of a frame does not.
func isStep(path execpath.Path) bool {
	return path != spec.Start && path != path.Outer().Node(spec.Start)
}

// markBegun marks a container and all its outer containers: each[3] and each, or
// a>b and a.
func (p *Replay) markBegun(path execpath.Path, seq uint64) {
	for ; path != ""; path = path.Outer() {
		p.stamp(stampInside, string(path), seq)
		if p.begun[path] == 0 {
			p.begun[path] = seq
		} else if p.seqs == nil {
			return // its outer containers are marked too
		}
	}
}

// Resumed reports whether the run has records.
func (p *Replay) Resumed() bool { return p.Start != nil }

// Begin returns the input of a container, nil if it is not recorded.
func (p *Replay) Begin(path execpath.Path, void uint64) *Begin {
	if b := p.begins[path]; b.seq > void {
		return b.Begin
	}
	return nil
}

// Begun reports whether a container has a valid record, of its beginning or
// inside.
func (p *Replay) Begun(path execpath.Path, void uint64) bool {
	return p.begun[path] > 0 && !p.isStale(stampInside, string(path), void)
}

// BegunAt returns the number of the first record of a container, [End] if there
// is no valid one.
func (p *Replay) BegunAt(path execpath.Path, void uint64) uint64 {
	if p.Begun(path, void) {
		return p.begun[path]
	}
	return End
}

// Attempt returns the number of the last attempt of a container or branch, counted
// from 1.
func (p *Replay) Attempt(path execpath.Path) int { return max(1, p.attempts[path]) }

// Interrupt returns an interrupt that the run had reached. It remains one even if
// the node no longer interrupts, for example without the flags with which the run
// began.
func (p *Replay) Interrupt(id string, void uint64) (i flow.Interrupt, ok bool) {
	i, ok = p.interrupts[id]
	return i, ok && !p.isStale(stampInterrupt, id, void)
}

// Unreported reports whether an interrupt was never reported.
func (p *Replay) Unreported(id string) bool { return p.unreported[id] }

// Answer returns the answer to an interrupt.
func (p *Replay) Answer(id string, void uint64) (answer any, ok bool) {
	answer, ok = p.answers[id]
	return answer, ok && !p.isStale(stampAnswer, id, void)
}

// Inputs returns the inputs that were merged at a place, in order.
func (p *Replay) Inputs(place execpath.Path) []Merged { return p.inputs[place] }

// Note returns an action's note at a path.
func (p *Replay) Note(path execpath.Path, key string, void uint64) (note any, ok bool) {
	note, ok = p.notes[noteName{path, key}]
	return note, ok && !p.isStale(stampNote, string(path)+" "+key, void)
}

// Reported returns the usage reported by the node at a path, which has no record yet.
func (p *Replay) Reported(path execpath.Path) flow.Usage { return p.reported[path] }

// InputsAfter returns the merged inputs of killed resumes after a record; later
// ones take precedence.
func (p *Replay) InputsAfter(seq uint64) map[string]any {
	values := map[string]any{}
	for _, g := range p.resumeInputs {
		if g.seq > seq {
			maps.Copy(values, g.values)
		}
	}
	return values
}

// IsLastInput reports whether an input equals the input of the last resume, which was
// killed: the same command was repeated.
func (p *Replay) IsLastInput(input map[string]any) bool {
	last := len(p.resumeInputs) - 1
	return last >= 0 && value.Equal(p.resumeInputs[last].values, input)
}

// Pending returns the interrupts in a run's records that wait for an answer, sorted
// by id. It excludes those of nodes that ended without an answer, for example by a
// timeout, and those that a retry revoked. secrets are the run's.
func Pending(records []checkpoint.Record, secrets *secret.Set) ([]flow.Interrupt, error) {
	var waits []checkpoint.Record
	for _, rec := range records {
		ended := func(wait execpath.Path) bool { return wait.Within(execpath.Path(rec.Path)) }
		switch body := newRecord(rec.Kind).(type) {
		case *Interrupt, *Answer:
			waits = append(waits, rec)
			continue
		case *Node, *Branch, *Attempt:
		case *Retry:
			if err := decode(rec, body, secrets.Unseal); err != nil {
				return nil, fmt.Errorf("record %d (%s): %w", rec.Seq, rec.Kind, err)
			}
			ended = func(wait execpath.Path) bool {
				return slices.ContainsFunc(body.Paths, func(branch execpath.Path) bool { return isBehind(wait, branch) })
			}
		default:
			continue
		}
		waits = slices.DeleteFunc(waits, func(w checkpoint.Record) bool { return ended(execpath.Path(w.Path)) })
	}
	p, err := New(waits, secrets, false)
	if err != nil {
		return nil, err
	}
	var pending []flow.Interrupt
	for id, i := range p.interrupts {
		if _, answered := p.answers[id]; !answered {
			pending = append(pending, i)
		}
	}
	sort.Slice(pending, func(i, j int) bool { return pending[i].ID < pending[j].ID })
	return pending, nil
}
