package engine

import (
	"cmp"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/checkpoint"
	"github.com/the-edge-agent/tea/host/internal/secret"
)

// Pending lists the interrupts in a run's records that wait for an answer, by
// id: not those of a node that has ended without one, by its time-out for
// instance. Secrets are those of the run.
func Pending(records []checkpoint.Record, secrets *secret.Set) ([]Interrupt, error) {
	var waits []checkpoint.Record
	for _, rec := range records {
		switch rec.Kind {
		case kindInterrupt, kindAnswer:
			waits = append(waits, rec)
		case kindNode, kindBranch:
			waits = slices.DeleteFunc(waits, func(w checkpoint.Record) bool { return within(w.Path, rec.Path) })
		}
	}
	p, err := newReplay(waits, secrets, false)
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

// within tells whether a path is that of something or of a part of it: of a
// node in a branch, a pass, an item or a subgraph, or of a call.
func within(path, scope string) bool {
	rest, ok := strings.CutPrefix(path, scope)
	return ok && (rest == "" || strings.ContainsRune(pathBorders, rune(rest[0])))
}
