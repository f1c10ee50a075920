package jsonschema_test

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

// A schema is compiled once. It fills in defaults and reports everything that
// does not fit.
func ExampleSchema_Validate() {
	document, _ := value.Decode([]byte(`{
		"type": "object",
		"properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "default": 18}},
		"required": ["name"],
		"additionalProperties": false
	}`))
	s, err := jsonschema.Compile(document)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, given := range []map[string]any{
		{"name": "Ada"},
		{"name": "Ada", "age": int64(-1), "mail": "a@b.c"},
	} {
		completed, _ := s.Complete(given)
		problems := s.Validate(completed)
		fmt.Println(value.Brief(completed), len(problems))
		for _, p := range problems {
			fmt.Println("  " + p.Error())
		}
	}
	// Output:
	// {"age":18,"name":"Ada"} 0
	// {"age":-1,"mail":"a@b.c","name":"Ada"} 2
	//   age: must be at least 0, got -1
	//   mail: unknown member "mail"
}

// A keyword that cannot be checked is refused, with its place.
func ExampleCheckKeywords() {
	fmt.Println(jsonschema.CheckKeywords(map[string]any{"properties": map[string]any{"a": map[string]any{"minimun": int64(1)}}}))
	// Output: schema at properties.a: the keyword "minimun" is not supported; did you mean "minimum"?
}
