package fulltext_test

import (
	"context"
	"fmt"
	"os"

	"github.com/the-edge-agent/tea/plugins/memory/internal/fulltext"
)

func Example() {
	dir, err := os.MkdirTemp("", "fulltext")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	index, err := fulltext.Open(dir, fulltext.Options{Language: "english"})
	if err != nil {
		panic(err)
	}
	defer index.Close()

	// Here the owner replays the rows that changed after index.Watermark().
	rows := []string{"The boiler's temperatures are rising", "Pump 2 was replaced", "The pumps ran at high temperature"}
	for i, text := range rows {
		change := fulltext.Document{ID: int64(i + 1), Seq: int64(i + 1), Fields: []fulltext.Field{{Name: "text", Text: text}}}
		if err := index.Put(change); err != nil {
			panic(err)
		}
	}
	if err := index.Flush(); err != nil {
		panic(err)
	}

	ranked, err := index.Search(context.Background(), `pump "high temperature"`, fulltext.SearchOptions{})
	if err != nil {
		panic(err)
	}
	for _, hit := range ranked.Top(10) {
		fmt.Printf("%s (%.3f)\n", rows[hit.ID-1], hit.Score)
	}
	fmt.Println("watermark", index.Watermark())
	// Output:
	// The pumps ran at high temperature (1.776)
	// watermark 3
}
