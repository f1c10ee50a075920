package state

import "maps"

// State is the object that one path of a run works on. It belongs to one
// goroutine; a [State.Fork] belongs to another. Values inside are shared and
// immutable: a write replaces a top-level key, nothing deeper.
type State struct {
	values map[string]any
	// shared says that values is used elsewhere: copy it before the next write.
	shared bool
}

// New takes over values; the caller must not change them afterwards.
func New(values map[string]any) *State {
	return &State{values: values}
}

// Reset makes s what [New] returns.
func (s *State) Reset(values map[string]any) { *s = State{values: values} }

// Fork returns a state that starts with the same content. The content is not
// copied: whichever side writes first copies the top level for itself.
func (s *State) Fork() *State {
	fork := &State{}
	s.ForkTo(fork)
	return fork
}

// ForkTo is [State.Fork] into a state that has its place already.
func (s *State) ForkTo(fork *State) {
	s.shared = true
	*fork = State{values: s.values, shared: true}
}

// Values is the content, to read. It stays as it is now whatever happens to
// the state later.
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

// Apply merges a node's update: each key through its reducer, then checked
// against its type. On an error (a [*flow.TypeError] or [*ReduceError]) the state
// is as it was.
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
