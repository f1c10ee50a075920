package store

import (
	"cmp"
	"maps"
	"slices"
)

// Candidates finds the entities for a full-text search. having returns up to limit
// entities that have all given words and the types of the query. A word of more than
// q.Limit entities is common and says little. Entities with the other words come first,
// those with most of them before others. If they are fewer than q.Enough, entities with
// the common words follow.
func Candidates[K cmp.Ordered](q TextQuery, having func(words []string, limit int) ([]K, error)) ([]K, error) {
	counts := map[K]int{}
	var common []string
	for _, word := range q.Words {
		keys, err := having([]string{word}, q.Limit+1)
		if err != nil {
			return nil, err
		}
		if len(keys) > q.Limit {
			common = append(common, word)
			continue
		}
		for _, key := range keys {
			counts[key]++
		}
	}
	found := slices.SortedFunc(maps.Keys(counts), func(a, b K) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for n := len(common); n > 0 && len(found) < min(q.Enough, q.Limit); n /= 2 {
		keys, err := having(common[:n], min(q.Enough, q.Limit))
		if err != nil {
			return nil, err
		}
		for _, key := range keys {
			if counts[key] == 0 {
				counts[key]++
				found = append(found, key)
			}
		}
	}
	return found[:min(len(found), q.Limit)], nil
}
