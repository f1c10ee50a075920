package evaluate

import (
	"math"
	"testing"
)

// The wanted values are those of numpy 2.4, scipy 1.17 and statsmodels 0.15 (python3 -m venv v;
// v/bin/pip install numpy scipy statsmodels; v/bin/python):
//
//	from statsmodels.stats.proportion import proportion_confint
//	proportion_confint(41, 50, method='wilson')
//	from statsmodels.stats.contingency_tables import mcnemar
//	mcnemar([[0, 6], [18, 0]], exact=True).pvalue
//	from statsmodels.stats.inter_rater import cohens_kappa
//	cohens_kappa([[both, only_a], [only_b, neither]]).kappa
//	numpy.percentile(means, [2.5, 97.5])  # of 10000 resamples with the numbers of SplitMix64
//	scipy.stats.bootstrap((d,), numpy.mean, n_resamples=100000, method='percentile')

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > tolerance {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestWilson(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ k, n, low, high float64 }{
		{5, 5, 0.5655175352168252, 1},
		{2, 5, 0.11762077423264788, 0.7692757187239871},
		{41, 50, 0.692039463256992, 0.902298073297658},
		{0, 500, 0, 0.007624340461552245},
		{437, 500, 0.8420322822801359, 0.900264711054623},
	} {
		low, high := wilson(c.k, c.n)
		near(t, "low", low, c.low, 1e-12)
		near(t, "high", high, c.high, 1e-12)
	}
}

func TestMcNemar(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b, c int
		p    float64
	}{
		{0, 0, 1},
		{0, 5, 0.0625},
		{1, 4, 0.375},
		{6, 18, 0.022655844688415527},
		{12, 25, 0.04703102743951604},
		{180, 240, 0.003937856047126103},
		{250, 250, 1},
	} {
		near(t, "p", mcnemar(c.b, c.c), c.p, 1e-10)
		near(t, "p the other way round", mcnemar(c.c, c.b), c.p, 1e-10)
	}
}

// generate returns numbers from 0 to 1 of a linear congruential generator (Knuth's MMIX).
func generate(n int, seed uint64) []float64 {
	list := make([]float64, n)
	for i := range list {
		seed = seed*6364136223846793005 + 1442695040888963407
		list[i] = float64(seed>>33) / (1 << 31)
	}
	return list
}

func TestBootstrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n                          int
		mean, low, high            float64
		scipyLow, scipyHigh, close float64
	}{
		{5, 0.1524166263453662, -0.22852071246132258, 0.5358310365863145, -0.22852071246132258, 0.5358310365863145, 1e-12},
		{50, 0.12961614016257225, 0.0264794546220917, 0.23148995599136685, 0.024423098108312107, 0.23270200019236645, 0.004},
		{500, 0.09413921488970516, 0.06222752559832761, 0.12639306872092185, 0.06173318892782554, 0.12643552784452675, 0.001},
	} {
		d := generate(c.n, uint64(c.n))
		for i, x := range generate(c.n, uint64(7*c.n)) {
			d[i] -= x * 0.8
		}
		near(t, "mean", mean(d), c.mean, 1e-12)
		low, high := bootstrap(d, 1)
		near(t, "low", low, c.low, 1e-12)
		near(t, "high", high, c.high, 1e-12)
		near(t, "scipy's low", low, c.scipyLow, c.close)
		near(t, "scipy's high", high, c.scipyHigh, c.close)
	}
}

func TestKappa(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n          int
		raw, kappa float64
	}{
		{5, 1, 1},
		{50, 0.86, 0.7145187601957586},
		{500, 0.8, 0.5640726080664006},
	} {
		a, b := make([]bool, c.n), make([]bool, c.n)
		same := generate(c.n, uint64(3*c.n))
		for i, x := range generate(c.n, uint64(c.n)) {
			a[i] = x < 0.7
			b[i] = a[i] == (same[i] < 0.8)
		}
		raw, got, defined := kappa(a, b)
		if !defined {
			t.Errorf("kappa of %d is undefined", c.n)
		}
		near(t, "raw", raw, c.raw, 1e-12)
		near(t, "kappa", got, c.kappa, 1e-12)
	}
	if _, _, defined := kappa([]bool{true, true}, []bool{true, true}); defined {
		t.Error("kappa of lists without a difference is defined")
	}
}
