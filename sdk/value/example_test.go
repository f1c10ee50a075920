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

func ExampleInto() {
	var p struct {
		Port    int      `json:"port"`
		Columns []string `json:"columns"`
	}
	v := map[string]any{"port": 8080.0, "columns": []any{"a", "b"}}
	fmt.Println(value.Into(v, &p), p)
	fmt.Println(value.Into(map[string]any{"port": 80.5}, &p))
	// Output:
	// <nil> {8080 [a b]}
	// port: cannot store number in a Go int
}

// Numbers compare by what they are, whatever their types.
func ExampleCompare() {
	order, ok := value.Compare(int64(9007199254740993), 9007199254740992.0)
	fmt.Println(order, ok)
	_, ok = value.Compare("1", int64(1))
	fmt.Println(ok, value.Equal(int64(1), 1.0))
	// Output:
	// 1 true
	// false true
}
