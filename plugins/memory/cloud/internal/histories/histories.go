// Package histories checks that the calls of several devices on one key can be put into one order that explains all
// results (linearizability).
package histories

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// operation is a call of a device on one key, with its result.
type operation struct {
	Key, Op string
	// Value is written by store and apply; Version is the condition of apply.
	Value   string
	Version int64
	// Found is the value that was read, and FoundVersion its version.
	Found        string
	FoundVersion int64
	// Created and Same are results of store, Done is the result of delete and apply.
	Created, Same, Done bool
	Call, Return        int64
}

func (o *operation) run(ctx context.Context, s *store.Stores) error {
	switch o.Op {
	case "store":
		stored, err := s.LongTerm.Store(ctx, store.Entry{Key: o.Key, Value: json.RawMessage(o.Value)})
		if err != nil {
			return err
		}
		o.Created, o.Same = stored[0].Created, stored[0].Deduplicated
	case "retrieve":
		found, err := s.LongTerm.Retrieve(ctx, "", o.Key)
		if o.Found = string(found.Value); !errors.Is(err, store.ErrNotFound) {
			return err
		}
	case "delete":
		var err error
		o.Done, err = s.LongTerm.Delete(ctx, "", o.Key)
		return err
	case "apply":
		err := s.Metadata.Apply(ctx, store.Change{Kind: "k", ID: o.Key, Body: json.RawMessage(o.Value), If: o.Version})
		if o.Done = err == nil; !errors.Is(err, store.ErrConflict) {
			return err
		}
	default:
		found, err := s.Metadata.Get(ctx, "k", o.Key)
		if o.Found, o.FoundVersion = string(found.Body), found.Version; !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// state is the state of a key.
type state struct {
	value   string
	version int64
}

// step is the sequential behaviour of a key.
func step(before, input, _ any) (bool, any) {
	s, o := before.(state), input.(operation)
	switch o.Op {
	case "store":
		return o.Created == (s.value == "") && o.Same == (s.value == o.Value), state{value: o.Value}
	case "retrieve":
		return o.Found == s.value, s
	case "delete":
		return o.Done == (s.value != ""), state{}
	case "apply":
		meets := o.Version == s.version || o.Version == store.New && s.version == 0
		if !o.Done {
			return !meets, s
		}
		return meets, state{o.Value, s.version + 1}
	}
	return o.Found == s.value && o.FoundVersion == s.version, s
}

// Check calls the stores of several devices concurrently and checks that the calls on each key have a common order. The
// devices share only the database.
func Check(t *testing.T, calls int, devices []*store.Stores) {
	t.Helper()
	start := time.Now()
	all := make([][]operation, len(devices))
	var group sync.WaitGroup
	for device, stores := range devices {
		group.Go(func() {
			all[device] = history(t, calls, stores, device, func() int64 { return int64(time.Since(start)) })
		})
	}
	group.Wait()
	check(t, calls, all)
}

// check checks the calls of each device.
func check(t *testing.T, calls int, devices [][]operation) {
	t.Helper()
	var all []porcupine.Operation
	for device, made := range devices {
		for _, o := range made {
			all = append(all, porcupine.Operation{ClientId: device, Input: o, Call: o.Call, Return: o.Return})
		}
	}
	if len(all) != len(devices)*calls {
		t.Fatalf("%d calls, want %d", len(all), len(devices)*calls)
	}
	if !porcupine.CheckOperations(porcupine.Model{Partition: byKey, Init: func() any { return state{} }, Step: step}, all) {
		t.Errorf("the calls of %d devices have no common order", len(devices))
	}
}

// history returns the calls of a device, timed by a clock that all devices share.
func history(t *testing.T, calls int, stores *store.Stores, device int, now func() int64) (all []operation) {
	t.Helper()
	r := rand.New(rand.NewPCG(uint64(device), 7)) //nolint:gosec // a test's choices
	versions := map[string]int64{}
	for i := range calls {
		o := operation{Key: fmt.Sprint("k", r.IntN(3)), Value: fmt.Sprintf(`"%d-%d"`, device, i%3)}
		switch r.IntN(6) {
		case 0, 1:
			o.Op = "store"
		case 2:
			o.Op = "retrieve"
		case 3:
			o.Op = "delete"
		case 4:
			o.Op, o.Key, o.Value = "apply", "d"+o.Key, fmt.Sprintf(`{"by": %d, "n": %d}`, device, i)
			if o.Version = versions[o.Key]; o.Version == 0 {
				o.Version = store.New
			}
		default:
			o.Op, o.Key = "get", "d"+o.Key
		}
		o.Call = now()
		err := o.run(t.Context(), stores)
		o.Return = now()
		if err != nil {
			t.Errorf("%s: %v", o.Op, err)
			return all
		}
		all = append(all, o)
		if o.Op == "get" {
			versions[o.Key] = o.FoundVersion
		}
	}
	return all
}

func byKey(all []porcupine.Operation) [][]porcupine.Operation {
	parts := map[string][]porcupine.Operation{}
	for _, o := range all {
		key := o.Input.(operation).Key
		parts[key] = append(parts[key], o)
	}
	var list [][]porcupine.Operation
	for _, part := range parts {
		list = append(list, part)
	}
	return list
}
