package engine

import (
	"fmt"
	"strings"

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
	interrupts map[string]Interrupt
	answers    map[string]any
	inputs     map[string][]input
	notes      map[string]map[string]any
	// begun are the paths of containers that have a record inside.
	begun map[string]bool
}

// input is what somebody gave on resume, where the run went on. begun says
// that the container at this place had begun with the state before it.
type input struct {
	values map[string]any
	begun  bool
}

func newReplay(records []checkpoint.Record, secrets *secret.Set) (*replay, error) {
	if len(records) == 0 {
		return &replay{}, nil
	}
	p := &replay{
		nodes: map[string]*nodeRecord{}, branches: map[string]map[string]any{}, attempts: map[string]int{},
		interrupts: map[string]Interrupt{}, answers: map[string]any{}, inputs: map[string][]input{},
		notes: map[string]map[string]any{}, begun: map[string]bool{},
	}
	for _, rec := range records {
		body, err := p.body(rec, secrets)
		if err != nil {
			return nil, fmt.Errorf("record %d (%s %s): %w", rec.Seq, rec.Kind, rec.Path, err)
		}
		p.add(rec, body)
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
	switch rec.Kind {
	case kindStart:
		p.start, _ = body["input"].(map[string]any)
		p.resumed = true
	case kindNode:
		p.nodes[rec.Path] = toNodeRecord(body)
	case kindRoute:
		if n := p.nodes[rec.Path]; n != nil {
			late := toNodeRecord(body)
			n.to, n.branches = late.to, late.branches
		}
	case kindBranch:
		p.branches[rec.Path] = body
	case kindAttempt:
		n, _ := body["n"].(int64)
		p.attempts[rec.Path] = int(n)
	case kindInterrupt:
		i := toInterrupt(rec.Path, body)
		p.interrupts[i.ID] = i
	case kindAnswer:
		id, _ := body["id"].(string)
		p.answers[id] = body["value"]
	case kindInput:
		values, _ := body["values"].(map[string]any)
		begun, _ := body["begun"].(bool)
		p.inputs[rec.Path] = append(p.inputs[rec.Path], input{values, begun})
	case kindNote:
		key, _ := body["key"].(string)
		if p.notes[rec.Path] == nil {
			p.notes[rec.Path] = map[string]any{}
		}
		p.notes[rec.Path][key] = body["value"]
	default:
		return
	}
	p.markBegun(rec.Path)
}

// markBegun marks every container around a path: sub of sub/fetch, each and
// each[3] of each[3]/fetch, a of a>b/clean.
func (p *replay) markBegun(path string) {
	for {
		i := strings.LastIndexAny(path, "/[>!")
		if i < 0 {
			return
		}
		path = path[:i]
		if p.begun[path] {
			return
		}
		p.begun[path] = true
	}
}
