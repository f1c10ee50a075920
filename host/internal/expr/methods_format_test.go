package expr_test

import (
	"strings"
	"testing"

	"github.com/the-edge-agent/tea/host/internal/expr"
)

func TestFormatMethodRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{{ "{} {}".format(1) }}`:        "needs 2 values, got 1",
		`{{ "{x}".format(y=1) }}`:        `has no argument "x"`,
		`{{ "{".format(1) }}`:            "a single { or }",
		`{{ "a } b".format(1) }}`:        "a single { or }",
		`{{ "{:d}".format("x") }}`:       ":d needs a number, not string",
		`{{ "{:d}".format(1.5) }}`:       "needs an integer",
		`{{ "{:q}".format(1) }}`:         `does not support the specification "q"`,
		`{{ "{!r}".format(1) }}`:         "no conversion !r",
		`{{ "{0[a}".format({"a": 1}) }}`: "[ without ]",
		`{{ "{:99999999}".format(1) }}`:  "a width above",
		`{{ "abc".index("z") }}`:         "find() returns -1 instead",
	} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			template, err := expr.Compile(text)
			if err == nil {
				_, err = template.Eval(t.Context(), jinjaState())
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("err = %v, want %q in it", err, want)
			}
		})
	}
}
