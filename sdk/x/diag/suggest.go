package diag

import "fmt"

// Suggest returns `did you mean "x"?` for the candidate that is most similar to word, or ""
// if none is similar enough (a third of the letters can differ).
func Suggest(word string, candidates []string) string {
	best, bestDistance := "", len(word)/3+1
	for _, c := range candidates {
		if d := distance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", best)
}

// Ending is [Suggest] for the end of a message: `; did you mean "x"?`, or "".
func Ending(word string, candidates []string) string {
	if hint := Suggest(word, candidates); hint != "" {
		return "; " + hint
	}
	return ""
}

// distance returns the optimal string alignment distance: insertions,
// deletions, substitutions and swaps of neighbours each cost one.
func distance(a, b string) int {
	s, t := []rune(a), []rune(b)
	rows := make([][]int, len(s)+1)
	for i := range rows {
		rows[i] = make([]int, len(t)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(s); i++ {
		for j := 1; j <= len(t); j++ {
			cost := 1
			if s[i-1] == t[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && s[i-1] == t[j-2] && s[i-2] == t[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(s)][len(t)]
}
