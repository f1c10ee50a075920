package subproc

import "context"

// turn counts the calls that began on a generation in one period. A swap ends the period
// and waits for its calls. It is guarded by the generation's lock.
type turn struct {
	generation *generation
	running    int
	ended      bool          // further calls begin elsewhere
	over       chan struct{} // closed when the turn has ended and no call is running
}

// nextTurn begins a turn, which admits calls, and returns the channel that is closed after
// the last call of the previous turn.
func (g *generation) nextTurn() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	over := g.endPresentTurn()
	g.turn = &turn{generation: g, over: make(chan struct{})}
	return over
}

// endTurn ends the current turn and returns the channel that is closed after its last
// call. The generation admits no calls until nextTurn.
func (g *generation) endTurn() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.endPresentTurn()
}

func (g *generation) endPresentTurn() <-chan struct{} {
	t := g.turn
	g.turn = nil
	if t == nil {
		t = &turn{generation: g, over: make(chan struct{})}
	}
	t.ended = true
	t.closeIfOver()
	return t.over
}

// begin admits a call; it returns nil if this generation takes no calls.
func (g *generation) begin() *turn {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.turn != nil {
		g.turn.running++
	}
	return g.turn
}

// end ends a call.
func (t *turn) end() {
	t.generation.mu.Lock()
	defer t.generation.mu.Unlock()
	t.running--
	t.closeIfOver()
}

func (t *turn) closeIfOver() {
	if t.ended && t.running == 0 {
		close(t.over)
	}
}

// turnKey is the key of a call's turn in its context.
type turnKey struct{ *supervisor }

// within returns the context of a call. Calls of the same plugin that are made during
// this one begin on the same generation, see [joined].
func (t *turn) within(ctx context.Context, s *supervisor) context.Context {
	return context.WithValue(ctx, turnKey{s}, t)
}

// joined admits a call that is made during another call of the plugin; it returns nil for
// other calls. The inner call must not wait for a swap, because the outer call may wait
// for the inner one.
func joined(ctx context.Context, s *supervisor) *turn {
	t, ok := ctx.Value(turnKey{s}).(*turn)
	if !ok {
		return nil
	}
	t.generation.mu.Lock()
	defer t.generation.mu.Unlock()
	if t.running == 0 || t.generation.process.dead() {
		return nil
	}
	t.running++
	return t
}
