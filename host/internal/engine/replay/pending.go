package replay

import (
	"cmp"
	"slices"

	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/execpath"
	"github.com/the-edge-agent/tea/host/internal/secret"
)

// Pending lists the interrupts in a run's records that wait for an answer, by
// id: not those of a node that has ended without one, by its time-out for
// instance. Secrets are those of the run.
func Pending(records []checkpoint.Record, secrets *secret.Set) ([]flow.Interrupt, error) {
	var waits []checkpoint.Record
	for _, rec := range records {
		switch newRecord(rec.Kind).(type) {
		case *Interrupt, *Answer:
			waits = append(waits, rec)
		case *Node, *Branch:
			waits = slices.DeleteFunc(waits, func(w checkpoint.Record) bool {
				return execpath.Path(w.Path).Within(execpath.Path(rec.Path))
			})
		}
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
	slices.SortFunc(pending, func(a, b flow.Interrupt) int { return cmp.Compare(a.ID, b.ID) })
	return pending, nil
}
