// Package gemini implements Google's Gemini API (generateContent).
//
// Start with [New].
package gemini
