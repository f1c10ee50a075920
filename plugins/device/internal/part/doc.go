// Package part is the interface between plugins/device and its protocols: a [Part] is a namespace of actions with its
// settings.
package part
