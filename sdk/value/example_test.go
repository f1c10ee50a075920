package value_test

import (
	"fmt"

	"github.com/the-edge-agent/tea/sdk/value"
)

func ExampleDecode() {
	v, err := value.Decode([]byte(`{"id": 9007199254740993, "ratio": 2.0}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fields := v.(map[string]any)
	fmt.Printf("%T %T\n", fields["id"], fields["ratio"])
	raw, _ := value.Encode(v)
	fmt.Println(string(raw))
	// Output:
	// int64 float64
	// {"id":9007199254740993,"ratio":2.0}
}

func ExampleFrom() {
	type reading struct {
		Sensor string    `json:"sensor"`
		Values []float32 `json:"values"`
	}
	v, _ := value.From(reading{Sensor: "t1", Values: []float32{20, 20.5}})
	raw, _ := value.Encode(v)
	fmt.Println(string(raw))
	// Output: {"sensor":"t1","values":[20.0,20.5]}
}
