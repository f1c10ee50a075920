//go:build js

package jspromise

import (
	"context"
	"fmt"
	"syscall/js"
)

// Error is the reason of a rejected promise.
type Error struct {
	// Name is the error's class, such as "TypeError"; Message its text.
	Name, Message string
	// Value is the value with which the promise was rejected.
	Value js.Value
}

// Error returns name and message.
func (e *Error) Error() string {
	if e.Name == "" || e.Name == "Error" {
		return e.Message
	}
	return e.Name + ": " + e.Message
}

// Await waits for a promise, or for the end of ctx. A value that is not a promise is returned
// unchanged. It blocks the goroutine: a callback from JavaScript must not call it, except in a
// goroutine that it starts. The error is an [*Error] or the cause of ctx's end.
func Await(ctx context.Context, promise js.Value) (js.Value, error) {
	if promise.Type() != js.TypeObject || promise.Get("then").Type() != js.TypeFunction {
		return promise, nil
	}
	type outcome struct {
		value js.Value
		err   error
	}
	done := make(chan outcome, 1)
	var fulfilled, rejected js.Func
	release := func() {
		fulfilled.Release()
		rejected.Release()
	}
	fulfilled = js.FuncOf(func(_ js.Value, args []js.Value) any {
		release()
		done <- outcome{value: first(args)}
		return nil
	})
	rejected = js.FuncOf(func(_ js.Value, args []js.Value) any {
		release()
		done <- outcome{err: ToError(first(args))}
		return nil
	})
	promise.Call("then", fulfilled, rejected)
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
		return js.Undefined(), context.Cause(ctx)
	}
}

func first(args []js.Value) js.Value {
	if len(args) == 0 {
		return js.Undefined()
	}
	return args[0]
}

// ToError converts a value that JavaScript has thrown.
func ToError(thrown js.Value) *Error {
	if thrown.Type() != js.TypeObject {
		return &Error{Message: thrown.String(), Value: thrown}
	}
	return &Error{Name: text(thrown.Get("name")), Message: text(thrown.Get("message")), Value: thrown}
}

func text(v js.Value) string {
	if v.Type() != js.TypeString {
		return ""
	}
	return v.String()
}

// Catch calls fn and returns exceptions of JavaScript as an error. Any other panic continues.
func Catch(fn func() js.Value) (v js.Value, err error) {
	defer func() {
		if r := recover(); r != nil {
			thrown, ok := r.(js.Error)
			if !ok {
				panic(r)
			}
			v, err = js.Undefined(), ToError(thrown.Value)
		}
	}()
	return fn(), nil
}

// Bytes returns a copy of a Uint8Array.
func Bytes(array js.Value) ([]byte, error) {
	if !array.InstanceOf(js.Global().Get("Uint8Array")) {
		return nil, fmt.Errorf("expected a Uint8Array, got %s", array.Type())
	}
	data := make([]byte, array.Length())
	js.CopyBytesToGo(data, array)
	return data, nil
}

// Array returns a Uint8Array with a copy of data.
func Array(data []byte) js.Value {
	array := js.Global().Get("Uint8Array").New(len(data))
	js.CopyBytesToJS(array, data)
	return array
}
