// Package timeactions is the host's bundle time: time.sleep. Start with [Bundle].
package timeactions
