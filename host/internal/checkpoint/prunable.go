package checkpoint

import "time"

// Prunable gives the ids of the runs that [Store.GC] would remove now.
func (s *Store) Prunable(policy Policy, now time.Time) ([]string, error) {
	runs, err := s.candidates(now)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, c := range policy.choose(runs, now) {
		ids = append(ids, c.id)
	}
	return ids, nil
}
