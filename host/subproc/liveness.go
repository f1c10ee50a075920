package subproc

import (
	"context"
	"fmt"
	"time"
)

const (
	// maxStopped is the number of missed health checks after which a stopped
	// process is killed.
	maxStopped = 3
	// maxMissed is the number for a process that neither answers nor works.
	maxMissed = 10
)

// watchHealth checks the plugin's health while it has calls, until its process ends. A
// process that does not answer is killed if it is stopped, or if it uses no processor
// time, which means a deadlock. A process that works may be too busy to answer; the
// deadlines of its calls apply.
func (p *process) watchHealth() {
	tick := time.NewTicker(p.times.health)
	defer tick.Stop()
	missed, busy := 0, time.Duration(0)
	for {
		select {
		case <-p.runner.exited:
			return
		case <-tick.C:
		}
		if p.unanswered.String() == "" || p.answers() {
			missed = 0
			continue
		}
		now, stopped, known := p.runner.activity()
		if !known || !stopped && now-busy > p.times.health/100 {
			missed, busy = 0, now
			continue
		}
		missed++
		silent := time.Duration(missed) * p.times.health
		switch {
		case stopped && missed >= maxStopped:
			p.killBecause(verdict{reason: fmt.Sprintf("its process was stopped (SIGSTOP) for %s, and was killed", silent)})
		case missed >= maxMissed:
			p.killBecause(verdict{reason: fmt.Sprintf("it did not answer health checks for %s and was not working, and was killed", silent)})
		}
	}
}

// answers reports whether the plugin answers a health check, even with an error.
func (p *process) answers() bool {
	ctx, cancel := context.WithTimeout(context.Background(), p.times.health)
	defer cancel()
	_ = p.wire.Health(ctx)
	return ctx.Err() == nil
}
