// Package notify is the bundle of notify.send, which sends messages to people and rooms
// that the settings name.
//
// Start with [Bundle]. [Target] is where messages go; each service (services.go,
// email.go) turns a message into its own format. A failed message says whether it may
// have been delivered.
package notify
