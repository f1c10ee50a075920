package confine_test

import (
	"fmt"
	"os"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// An action that reads files by a name from a workflow stays under a root.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	root, err := confine.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	fmt.Println(root.WriteFile("notes/today.txt", []byte("tea"), true))
	data, err := root.ReadFile("notes/today.txt", 1<<20)
	fmt.Println(string(data), err)
	_, err = root.ReadFile("notes/%2e%2e/%2e%2e/etc/passwd", 1<<20)
	fmt.Println(tea.AsError(err).Type)
	// Output:
	// <nil>
	// tea <nil>
	// permission_denied
}
