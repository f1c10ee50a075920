package state

import "maps"

// State is the state of one path of a run. It is not safe for concurrent use, but a
// [State.Fork] can be used by another goroutine. Its values are shared and immutable:
// a write replaces a top-level key, nothing deeper.
type State struct {
	values map[string]any
	// shared reports whether values is used elsewhere: copy it before the next write.
	shared bool
}

// Reset replaces the content by values, which the state then owns; the caller must
// not change them afterwards.
func (s *State) Reset(values map[string]any) { *s = State{values: values} }

// Fork returns a state with the same content. The content is not copied until one
// of the states is written, which then copies the top level.
func (s *State) Fork() *State {
	fork := &State{}
	s.ForkTo(fork)
	return fork
}

// ForkTo is [State.Fork] into an existing state. Several goroutines may fork a fork that
// was not modified.
func (s *State) ForkTo(fork *State) {
	if !s.shared {
		s.shared = true
	}
	*fork = State{values: s.values, shared: true}
}

// Values returns the content, which the caller must not change. Later writes to the
// state do not affect it.
func (s *State) Values() map[string]any {
	s.shared = true
	return s.values
}

// View returns the content, valid until the next write. The caller must not
// keep the map or modify it.
func (s *State) View() map[string]any { return s.values }

// Get returns the value under a top-level key.
func (s *State) Get(key string) (any, bool) {
	v, ok := s.values[key]
	return v, ok
}

// Set replaces one key without reducer or check.
func (s *State) Set(key string, v any) {
	s.own()
	s.values[key] = v
}

// Merge replaces several keys without reducers or checks.
func (s *State) Merge(values map[string]any) {
	for k, v := range values {
		s.Set(k, v)
	}
}

// Apply merges a node's update: each key through its reducer, then checked against
// its type. After an error, a [*flow.TypeError] or [*ReduceError], the state is
// unchanged.
func (s *State) Apply(update map[string]any, schema *Schema) error {
	if schema == nil {
		s.Merge(update)
		return nil
	}
	next := make(map[string]any, len(update))
	for k, v := range update {
		reduced, err := schema.reduce(k, s.values[k], v)
		if err != nil {
			return err
		}
		next[k] = reduced
	}
	s.Merge(next)
	return nil
}

func (s *State) own() {
	if !s.shared {
		return
	}
	if s.values == nil {
		s.values = map[string]any{}
	} else {
		s.values = maps.Clone(s.values)
	}
	s.shared = false
}
