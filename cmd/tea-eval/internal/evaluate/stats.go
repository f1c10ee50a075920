package evaluate

import (
	"math"
	"slices"
)

// z is the 97.5% quantile of the normal distribution.
const z = 1.959963984540054

// wilson returns the 95% score interval of a rate (Wilson 1927, without correction for
// continuity). successes can be a sum of rates.
func wilson(successes, n float64) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	p := successes / n
	middle := (p + z*z/(2*n)) / (1 + z*z/n)
	half := z / (1 + z*z/n) * math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return max(0, middle-half), min(1, middle+half)
}

// mcnemar returns the exact two-sided p-value for b and c discordant pairs (McNemar 1947):
// the binomial test of the smaller one with probability 1/2.
func mcnemar(b, c int) float64 {
	n := float64(b + c)
	sum := 0.0
	all, _ := math.Lgamma(n + 1)
	for k := range min(b, c) + 1 {
		i, _ := math.Lgamma(float64(k) + 1)
		rest, _ := math.Lgamma(n - float64(k) + 1)
		sum += math.Exp(all - i - rest - n*math.Ln2)
	}
	return min(1, 2*sum)
}

// kappa returns the share of equal entries and Cohen's kappa (Cohen 1960), which is
// undefined if all entries of both are the same.
func kappa(a, b []bool) (raw, kappa float64, defined bool) {
	n := float64(len(a))
	var same, yesA, yesB float64
	for i := range a {
		if a[i] == b[i] {
			same++
		}
		if a[i] {
			yesA++
		}
		if b[i] {
			yesB++
		}
	}
	if n == 0 {
		return 0, 0, false
	}
	raw = same / n
	chance := yesA/n*yesB/n + (1-yesA/n)*(1-yesB/n)
	if chance == 1 {
		return raw, 0, false
	}
	return raw, (raw - chance) / (1 - chance), true
}

// resamples is the number of bootstrap samples.
const resamples = 10000

// bootstrap returns the 95% percentile interval of the mean of paired differences (Efron
// 1979). The same seed returns the same interval. The random numbers are those of
// SplitMix64.
func bootstrap(differences []float64, seed uint64) (low, high float64) {
	n := uint64(len(differences))
	if n == 0 {
		return 0, 0
	}
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range n {
			seed += 0x9e3779b97f4a7c15
			x := seed
			x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
			x = (x ^ x>>27) * 0x94d049bb133111eb
			sum += differences[(x^x>>31)>>32*n>>32]
		}
		means[i] = sum / float64(n)
	}
	slices.Sort(means)
	return quantile(means, 0.025), quantile(means, 0.975)
}

// quantile interpolates linearly between sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	below := int(at)
	if below+1 >= len(sorted) {
		return sorted[below]
	}
	return sorted[below] + (at-float64(below))*(sorted[below+1]-sorted[below])
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(1, len(values)))
}
