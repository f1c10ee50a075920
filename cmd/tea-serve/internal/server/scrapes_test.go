package server

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Scrapes that took longer than their client waited were answered all the same, and on a
// busy machine the server was soon occupied with hundreds of them.
func TestScrapesOfClientsThatGaveUpAddNoWork(t *testing.T) {
	t.Parallel()
	gathers, begun, end := 0, make(chan struct{}), make(chan struct{})
	m := &metrics{registry: prometheus.NewRegistry(), gathering: make(chan struct{}, 1)}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "slow"}, func() float64 {
		if gathers++; gathers == 1 {
			close(begun)
			<-end
		}
		return 1
	}))
	first := make(chan error, 1)
	go func() {
		_, err := m.gatherer(t.Context()).Gather()
		first <- err
	}()
	<-begun
	ctx, giveUp := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := m.gatherer(ctx).Gather()
		waiting <- err
	}()
	giveUp()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("the second scrape: %v", err)
	}
	close(end)
	if err := <-first; err != nil || gathers != 1 {
		t.Errorf("the first scrape: %v after %d", err, gathers)
	}
	if families, err := m.gatherer(t.Context()).Gather(); err != nil || len(families) != 1 {
		t.Errorf("the next scrape: %d families, %v", len(families), err)
	}
}
