package engine

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/secret"
	"github.com/the-edge-agent/tea/sdk/value"
)

// replay is the index of a resumed run's records. It is immutable once built.
type replay struct {
	start      map[string]any
	resumed    bool
	nodes      map[string]*nodeRecord
	branches   map[string]map[string]any
	attempts   map[string]int
	interrupts map[string]flow.Interrupt
	answers    map[string]any
	inputs     map[string][]input
	notes      map[string]map[string]any
	// unseen are interrupts that nobody was told of: the run went on beside
	// them until it failed or was stopped.
	unseen map[string]bool
	// used is what the recorded part has used, worked the time it took.
	used   flow.Usage
	worked time.Duration
	// reported is what nodes that have no record yet have reported.
	reported map[string]flow.Usage
	// session and latest are the times of the first and the last record since
	// worked was known.
	session, latest time.Time
	// done says that the run had ended well, and nothing is recorded since.
	done bool
	// redone are the branches that were run again after they had failed, and
	// the containers around them: what is recorded up to there is void.
	redone map[string]uint64
	// seqs are the numbers of the last records of each kind and path, where
	// there were retries.
	seqs map[string]uint64
	// begun are the paths of containers that have a record inside, with the
	// number of the first.
	begun map[string]uint64
	// given are the inputs of resumes that were killed before they ended;
	// givenTaken says that some frame has merged the last one.
	given      []given
	givenTaken bool
}

// input is what somebody gave on resume, where the run went on. begun says
// that the container at this place had begun with the state before it.
type input struct {
	values map[string]any
	begun  bool
	// given says that it was merged from what a resume was given.
	given bool
	seq   uint64
}

// given is what a resume or a fork was given as input at a record.
type given struct {
	seq    uint64
	values map[string]any
}

// inputAll is behind every record.
const inputAll = math.MaxUint64

func newReplay(records []checkpoint.Record, secrets *secret.Set, retry bool) (*replay, error) {
	if len(records) == 0 {
		return &replay{}, nil
	}
	p := &replay{
		nodes: map[string]*nodeRecord{}, branches: map[string]map[string]any{}, attempts: map[string]int{},
		interrupts: map[string]flow.Interrupt{}, answers: map[string]any{}, inputs: map[string][]input{},
		notes: map[string]map[string]any{}, begun: map[string]uint64{}, unseen: map[string]bool{},
		reported: map[string]flow.Usage{}, redone: map[string]uint64{},
	}
	if retry || hasRetries(records) {
		p.seqs = map[string]uint64{}
	}
	for _, rec := range records {
		body, err := p.body(rec, secrets)
		if err != nil {
			return nil, fmt.Errorf("record %d (%s %s): %w", rec.Seq, rec.Kind, rec.Path, err)
		}
		p.add(rec, body)
		p.count(rec, body)
	}
	p.worked += p.latest.Sub(p.session)
	if last := records[len(records)-1]; last.Kind == kindInterrupt {
		clear(p.unseen) // it came to a stop there
	}
	return p, nil
}

func (p *replay) body(rec checkpoint.Record, secrets *secret.Set) (map[string]any, error) {
	if len(rec.Body) == 0 {
		return nil, nil
	}
	v, err := value.Decode(rec.Body)
	if err != nil {
		return nil, err
	}
	if v, err = secrets.Unseal(v); err != nil {
		return nil, err
	}
	body, ok := v.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the body is %s, not an object", value.TypeName(v))
	}
	return body, nil
}

func (p *replay) add(rec checkpoint.Record, body map[string]any) {
	p.done = rec.Kind == kindStatus && body["status"] == string(flow.Done)
	switch rec.Kind {
	case kindStart:
		p.start, _ = body["input"].(map[string]any)
		p.resumed = true
	case kindNode:
		p.nodes[rec.Path] = toNodeRecord(body)
		p.stamp(kindNode, rec.Path, rec.Seq)
	case kindRoute:
		if n := p.nodes[rec.Path]; n != nil {
			late := toNodeRecord(body)
			n.to, n.branches = late.to, late.branches
		}
	case kindBranch:
		p.branches[rec.Path] = body
		p.stamp(kindBranch, rec.Path, rec.Seq)
	case kindAttempt:
		n, _ := body["n"].(int64)
		p.attempts[rec.Path] = int(n)
	case kindInterrupt:
		i := toInterrupt(rec.Path, body)
		p.interrupts[i.ID] = i
		delete(p.answers, i.ID) // of before a retry
		p.unseen[i.ID] = true
		p.stamp(kindInterrupt, i.ID, rec.Seq)
	case kindAnswer:
		id, _ := body["id"].(string)
		p.answers[id] = body["value"]
		p.stamp(kindAnswer, id, rec.Seq)
	case kindInput:
		values, _ := body["values"].(map[string]any)
		begun, _ := body["begun"].(bool)
		merged, _ := body["given"].(bool)
		p.givenTaken = p.givenTaken || merged
		p.inputs[rec.Path] = append(p.inputs[rec.Path], input{values, begun, merged, rec.Seq})
	case kindGiven:
		values, _ := body["values"].(map[string]any)
		p.given, p.givenTaken = append(p.given, given{rec.Seq, values}), false
	case kindNote:
		key, _ := body["key"].(string)
		if p.notes[rec.Path] == nil {
			p.notes[rec.Path] = map[string]any{}
		}
		p.notes[rec.Path][key] = body["value"]
		p.stamp(kindNote, rec.Path+" "+key, rec.Seq)
	case kindRetry:
		paths, _ := body["paths"].([]any)
		for _, path := range paths {
			text, _ := path.(string)
			p.retry(text, rec.Seq)
		}
		return
	default:
		return
	}
	p.markBegun(rec.Path, rec.Seq)
}

// count adds what a record says of the budget. The usage in a status is that
// of the whole run so far, failures and interrupted work included.
func (p *replay) count(rec checkpoint.Record, body map[string]any) {
	switch rec.Kind {
	case kindNode:
		if isStep(rec.Path) {
			p.used.Steps++
			p.used = p.used.Add(p.nodes[rec.Path].usage).Sub(p.reported[rec.Path])
			delete(p.reported, rec.Path)
		}
	case kindUsage:
		u := toUsage(body)
		p.used = p.used.Add(u)
		p.reported[rec.Path] = p.reported[rec.Path].Add(u)
	case kindSession:
		p.worked += p.latest.Sub(p.session)
		p.session = rec.Time
	case kindStatus:
		p.given = nil // the resume came to its end
		if body["status"] == string(flow.Waiting) {
			clear(p.unseen)
		}
		if usage, ok := body["usage"].(map[string]any); ok {
			steps := p.used.Steps
			p.used, p.worked = toUsage(usage), toSeconds(usage["seconds"])
			p.used.Steps = steps
			clear(p.reported)
			p.session = rec.Time
		}
	}
	if p.session.IsZero() {
		p.session = rec.Time
	}
	p.latest = rec.Time
}

// markBegun marks every container around a path: sub of sub/fetch, each and
// each[3] of each[3]/fetch, a of a>b/clean.
func (p *replay) markBegun(path string, seq uint64) {
	for {
		i := strings.LastIndexAny(path, pathBorders)
		if i < 0 {
			return
		}
		path = path[:i]
		p.stamp(stampInside, path, seq)
		if p.begun[path] == 0 {
			p.begun[path] = seq
		} else if p.seqs == nil {
			return // and so are those around
		}
	}
}

// stampInside is the kind of the last record inside a container.
const stampInside = "inside"

// hasBegun reports whether a container has a record inside that counts in a
// frame.
func (p *replay) hasBegun(path string, void uint64) bool {
	return p.begun[path] > 0 && !p.isStale(stampInside, path, void)
}

// begunAt is the first record inside a container, inputAll where there is none
// that counts.
func (p *replay) begunAt(path string, void uint64) uint64 {
	if p.hasBegun(path, void) {
		return p.begun[path]
	}
	return inputAll
}
