package server

import "time"

const (
	// aloneTime is the time after which the next suspect is tried.
	aloneTime = 10 * time.Second
	// suspectWait is the wait of a suspect for each time that the server ended.
	suspectWait = time.Second
)

// release tries the next suspect, after a wait and one at a time: if the server ends
// for another reason, the end does not count against all of them. The caller holds the
// mutex.
func (s *server) release() {
	for s.alone == nil && len(s.suspects) > 0 {
		it := s.suspects[0]
		s.suspects = s.suspects[1:]
		if s.led.state.items[it.ID] != it { // it was cancelled
			continue
		}
		s.alone = it
		time.AfterFunc(aloneTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.cleared(it)
		})
		it.NotBefore = later(it.NotBefore, time.Now().Add(time.Duration(it.Stuck)*suspectWait))
		s.enqueue(it)
	}
}

// cleared tries the next suspect if it is the one that is tried now. The caller
// holds the mutex.
func (s *server) cleared(it *item) {
	if s.alone == it {
		s.alone = nil
		s.release()
	}
}
