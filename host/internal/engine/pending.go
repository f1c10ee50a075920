package engine

import (
	"cmp"
	"slices"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
)

// Pending lists the interrupts in a run's records that have no answer, by id.
func Pending(records []checkpoint.Record) ([]Interrupt, error) {
	var waits []checkpoint.Record
	for _, rec := range records {
		if rec.Kind == kindInterrupt || rec.Kind == kindAnswer {
			waits = append(waits, rec)
		}
	}
	p, err := newReplay(waits, nil)
	if err != nil {
		return nil, err
	}
	var pending []Interrupt
	for id, i := range p.interrupts {
		if _, answered := p.answers[id]; !answered {
			pending = append(pending, i)
		}
	}
	slices.SortFunc(pending, func(a, b Interrupt) int { return cmp.Compare(a.ID, b.ID) })
	return pending, nil
}
