package server

import "time"

const (
	// trialTime is the time after which the next suspect is tried.
	trialTime = 10 * time.Second
	// suspectWait is the wait of a suspect for each time that the server ended.
	suspectWait = time.Second
)

// tryNextSuspect tries the next suspect, after a wait and one at a time: if the server ends
// for another reason, the end does not count against all of them. The caller holds the
// mutex.
func (s *server) tryNextSuspect() {
	for s.trial == nil && len(s.suspects) > 0 {
		it := s.suspects[0]
		s.suspects = s.suspects[1:]
		if s.led.state.items[it.ID] != it { // it was cancelled
			continue
		}
		s.trial = it
		time.AfterFunc(trialTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.endTrial(it)
		})
		it.NotBefore = later(it.NotBefore, time.Now().Add(time.Duration(it.Stuck)*suspectWait))
		s.enqueue(it)
	}
}

// endTrial tries the next suspect if it is the one that is tried now. The caller
// holds the mutex.
func (s *server) endTrial(it *item) {
	if s.trial == it {
		s.trial = nil
		s.tryNextSuspect()
	}
}
