// Command offline serves the pages, the search service and the model of the
// example research, so that it runs without a network.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/the-edge-agent/tea/examples/internal/offline"
)

func main() {
	address := flag.String("addr", "127.0.0.1:8000", "the address to listen at")
	dir := flag.String("dir", "examples/research", "the folder of the example")
	flag.Parse()
	handler, err := offline.Handler(*dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("serving the example at http://" + *address)
	server := &http.Server{Addr: *address, Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	log.Fatal(server.ListenAndServe())
}
