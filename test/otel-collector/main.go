// Command otel-collector is a collector that prints what it gets, for tests: the
// OTLP receiver of the OpenTelemetry collector. Its first line is its address; each
// further one is a request, as the collector has understood it, in OTLP's JSON.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"
)

func main() {
	for tries := 0; ; tries++ {
		err := serve()
		if err == nil {
			select {}
		}
		if tries == 100 { // another process can have taken the port
			log.Fatal(err)
		}
	}
}

// serve starts the receiver at a free port.
func serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		return err
	}
	f := otlpreceiver.NewFactory()
	config := f.CreateDefaultConfig().(*otlpreceiver.Config)
	config.GRPC, config.HTTP.Endpoint = nil, addr
	var mu sync.Mutex
	print := func(text []byte, err error) error {
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		_, err = fmt.Fprintf(os.Stdout, "%s\n", text)
		return err
	}
	traces, err := consumer.NewTraces(func(_ context.Context, d ptrace.Traces) error {
		return print(new(ptrace.JSONMarshaler).MarshalTraces(d))
	})
	if err != nil {
		return err
	}
	metrics, err := consumer.NewMetrics(func(_ context.Context, d pmetric.Metrics) error {
		return print(new(pmetric.JSONMarshaler).MarshalMetrics(d))
	})
	if err != nil {
		return err
	}
	settings := receivertest.NewNopSettings()
	settings.ID = component.NewID(f.Type())
	var r receiver.Traces
	if r, err = f.CreateTraces(context.Background(), settings, config, traces); err != nil {
		return err
	}
	if _, err := f.CreateMetrics(context.Background(), settings, config, metrics); err != nil { // the same receiver
		return err
	}
	if err := r.Start(context.Background(), componenttest.NewNopHost()); err != nil {
		return err
	}
	fmt.Println("http://" + addr)
	return nil
}
