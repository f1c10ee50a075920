// Package jspromise converts between JavaScript's promises and Go calls, in
// programs for browsers (GOOS=js). Start with Await.
package jspromise
